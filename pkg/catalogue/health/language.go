package health

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

// The limits of an expression. They apply before macros and types, which can cost without bound themselves.
const (
	// mostLoops is the maximum of loops in an expression, mostNested of loops in each other; has is no loop.
	mostLoops  = 8
	mostNested = 4
	// mostCompared is how many parts of the object may be compared, each perhaps as large as the object: CEL counts no
	// depth.
	mostCompared = 32
	// mostItems is the maximum of items in a list or map literal.
	mostItems = 64
)

var (
	// plain functions return a number, a text, a bool, a time or a type: nothing that grows.
	plain = []string{
		operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Less, operators.LessEquals, operators.Greater,
		operators.GreaterEquals, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
		operators.Has, overloads.Size, overloads.Contains, overloads.StartsWith, overloads.EndsWith, overloads.Matches, "hasValue",
		overloads.TypeConvertBool, overloads.TypeConvertInt, overloads.TypeConvertUint, overloads.TypeConvertDouble,
		overloads.TypeConvertString, overloads.TypeConvertDuration, overloads.TypeConvertTimestamp, overloads.TypeConvertType,
		overloads.TimeGetFullYear, overloads.TimeGetMonth, overloads.TimeGetDayOfYear, overloads.TimeGetDate,
		overloads.TimeGetDayOfMonth, overloads.TimeGetDayOfWeek, overloads.TimeGetHours, overloads.TimeGetMinutes,
		overloads.TimeGetSeconds, overloads.TimeGetMilliseconds,
	}
	// passing functions return one of their arguments.
	passing = []string{operators.Conditional, overloads.TypeConvertDyn, "of", "ofNonZeroValue", "none", "value", "or", "orValue"}
	// steps lead to a part of their first argument.
	steps = []string{operators.Index, operators.OptIndex, operators.OptSelect}
	// loops bind a name to items, and maybes to the value of an optional field.
	loops  = []string{operators.All, operators.Exists, operators.ExistsOne, "existsOne", operators.Filter, operators.Map}
	maybes = []string{"optMap", "optFlatMap"}
)

// value describes the values that an expression may have.
type value struct {
	// parts are the names whose parts it may have, as bits: self, and those that loops bind. None: it has only content
	// of the expression.
	parts uint
	// times is how many times as large as the object it may be, at most.
	times int
	// isList says that it may be a list or map made by the expression.
	isList bool
}

func either(a, b value) value {
	return value{a.parts | b.parts, max(a.times, b.times), a.isList || b.isList}
}

// reader decides whether rules may have an expression, as it is parsed before macros: no value of it is much larger
// than the object, for any object. Names are bound to parts of the object, or to literals, and to nothing that was
// made of several parts.
type reader struct {
	info     *ast.SourceInfo
	names    map[string]value
	loops    int
	nested   int
	compared int
	// hasMacros says that the expression changes with macros.
	hasMacros bool
	problem   error
}

// readLanguage reads an expression. The reader has the problem if rules may not have it.
func readLanguage(parsed *ast.AST) (*reader, value) {
	r := &reader{info: parsed.SourceInfo(), names: map[string]value{self: {parts: 1, times: 1}}}
	return r, r.read(parsed.Expr())
}

func (r *reader) refuse(at ast.Expr, format string, about ...any) value {
	if r.problem == nil {
		r.problem = fmt.Errorf("at character %d: %w", r.info.GetStartLocation(at.ID()).Column()+1, fmt.Errorf(format, about...))
	}
	return value{}
}

func (r *reader) read(one ast.Expr) value {
	if r.problem != nil {
		return value{}
	}
	switch one.Kind() {
	case ast.LiteralKind:
		return value{}
	case ast.IdentKind:
		if strings.HasPrefix(one.AsIdent(), ".") { // it is self as well
			return r.refuse(one, "write the name without a dot before it")
		}
		return r.names[one.AsIdent()] // the type check reports undeclared names
	case ast.SelectKind:
		return r.partOf(one.AsSelect().Operand())
	case ast.CallKind:
		return r.call(one)
	case ast.ListKind:
		return r.literals(one, one.AsList().Elements())
	case ast.MapKind:
		var items []ast.Expr
		for _, entry := range one.AsMap().Entries() {
			items = append(items, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return r.literals(one, items)
	}
	return r.refuse(one, "a rule can't create objects: compare fields one by one")
}

func (r *reader) partOf(whole ast.Expr) value {
	found := r.read(whole)
	found.isList = false
	return found
}

func (r *reader) literals(list ast.Expr, items []ast.Expr) value {
	isOther := func(item ast.Expr) bool { return item.Kind() != ast.LiteralKind }
	if len(items) > mostItems || slices.ContainsFunc(items, isOther) {
		return r.refuse(list, "a list or map has at most %d items, and literals only: compare fields one by one", mostItems)
	}
	return value{isList: true}
}

func (r *reader) call(one ast.Expr) value {
	call := one.AsCall()
	name, operands := call.FunctionName(), call.Args()
	if call.IsMemberFunction() {
		if slices.Contains(loops, name) || slices.Contains(maybes, name) {
			return r.loop(one, call)
		}
		operands = append([]ast.Expr{call.Target()}, operands...)
	}
	r.hasMacros = r.hasMacros || name == operators.Has
	values, all := r.operands(name, operands)
	switch {
	case name == operators.Equals, name == operators.NotEquals:
		return r.compare(one, min(values[0].times, values[1].times))
	case name == operators.In:
		return r.compare(one, values[1].times)
	case name == operators.Add:
		return r.sum(one, values[0], values[1], all)
	case name == overloads.Matches && len(operands) > 0:
		return r.pattern(operands[len(operands)-1])
	case slices.Contains(steps, name):
		return value{values[0].parts, values[0].times, false}
	case slices.Contains(passing, name):
		return all
	case slices.Contains(plain, name):
		return value{}
	}
	return r.refuse(one, "%q is not a function of rules", text.Cut(name, longestWords))
}

// operands returns their values, and what the call may return of them.
func (r *reader) operands(name string, operands []ast.Expr) (values []value, all value) {
	for i, operand := range operands {
		values = append(values, r.read(operand))
		if name != operators.Conditional || i > 0 {
			all = either(all, values[i])
		}
	}
	return values, all
}

// compare counts the parts that a comparison walks through.
func (r *reader) compare(one ast.Expr, times int) value {
	if r.compared += times; r.compared > mostCompared {
		return r.refuse(one, "more than %d comparisons of fields with fields: split the rule", mostCompared)
	}
	return value{}
}

// sum is a number or a text if one of both is known not to be a list of the object.
func (r *reader) sum(one ast.Expr, left, right, all value) value {
	switch {
	case all.isList:
		return r.refuse(one, "+ is for numbers and strings, and not for lists: test both lists, combined with ||")
	case left.parts == 0 || right.parts == 0:
		return value{}
	}
	return value{all.parts, left.times + right.times, false}
}

// pattern refuses patterns that come from an object, and patterns that are many times as large as allowed: compiling
// them can cost more than all the rest.
func (r *reader) pattern(one ast.Expr) value {
	if one.Kind() != ast.LiteralKind {
		return r.refuse(one, "the pattern of matches has to be a literal")
	}
	literal, _ := one.AsLiteral().Value().(string)
	parsed, err := syntax.Parse(literal, syntax.Perl)
	switch {
	case err != nil:
		return r.refuse(one, "its pattern can't be read: %s", text.Cut(text.Line(err.Error()), longestProblem))
	case sizeOf(parsed) > 10*largestPattern: // CEL measures it exactly
		return r.refuse(one, "its pattern has more than %d steps", largestPattern)
	}
	return value{}
}

// sizeOf is about the number of steps of a pattern's program.
func sizeOf(pattern *syntax.Regexp) int {
	size := 1
	if pattern.Op == syntax.OpLiteral {
		size = len(pattern.Rune)
	}
	for _, part := range pattern.Sub {
		size += sizeOf(part)
	}
	if pattern.Op == syntax.OpRepeat {
		size *= max(pattern.Min, pattern.Max, 1)
	}
	return size
}

// loop reads a call of loops or maybes.
func (r *reader) loop(one ast.Expr, call ast.CallExpr) value {
	name, args := call.FunctionName(), call.Args()
	isMaybe := slices.Contains(maybes, name)
	if r.loops++; r.loops > mostLoops || r.nested >= mostNested {
		return r.refuse(one, "at most %d of all, exists, exists_one, filter, map and optMap are allowed, nested at most %d deep: split the rule",
			mostLoops, mostNested)
	}
	r.hasMacros = true
	bit := uint(1) << r.loops
	over := r.read(call.Target())
	if isMaybe {
		over = r.read(call.Target()) // the macro has it twice, so it counts twice
	}
	switch {
	case over.times > 1:
		return r.refuse(one, "only a field of the object, or a list of literals, can be looped over")
	case len(args) < 2 || args[0].Kind() != ast.IdentKind:
		return r.refuse(one, "its first argument has to be a name, and its second an expression")
	}
	bound := over
	if !isMaybe {
		bound = value{}
		if over.parts != 0 {
			bound = value{parts: bit, times: 1}
		}
	}
	result := r.within(args[0].AsIdent(), bound, args[1:])
	switch {
	case isMaybe:
		return result
	case name == operators.Filter:
		return over
	case name != operators.Map:
		return value{}
	case result.isList || result.parts&^bit != 0: // content of each element, or all of something else
		return r.refuse(one, "the last argument of map has to be a field of its element, a number or a text")
	}
	return value{over.parts, max(over.times, result.times), over.isList}
}

// within reads expressions in which a name is bound; it returns the value of the last.
func (r *reader) within(name string, bound value, expressions []ast.Expr) (last value) {
	before, had := r.names[name]
	r.names[name] = bound
	r.nested++
	for _, one := range expressions {
		last = r.read(one)
	}
	r.nested--
	delete(r.names, name)
	if had {
		r.names[name] = before
	}
	return last
}
