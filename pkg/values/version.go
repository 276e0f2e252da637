package values

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template/parse"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// CheckVersion checks the values of a version: their form, and that form fields have valid paths
// and defaults. catalogue.Read calls it, for admission and the merge. Field is the path below the
// version.
func CheckVersion(version *kubermaticv1.AddonVersion) (field string, err error) {
	if version.Values != nil {
		if _, err := Decode(version.Values.Raw); err != nil {
			return "values", fmt.Errorf("%w: correct or shorten them", err)
		}
	}
	if field, err := CheckSources(version); err != nil {
		return field, err
	}
	if version.Template == nil {
		return "", nil
	}
	if err := CheckFormSpec(version.Template.FormSpec); err != nil {
		if wrong, ok := errors.AsType[*FieldError](err); ok {
			return fmt.Sprintf("template.formSpec[%s]", wrong.Field), errors.New(wrong.Problem)
		}
		return "template.formSpec", err
	}
	return "", nil
}

// maxTemplateBytes is the schema's limit, which is not checked for specs from git.
const maxTemplateBytes = 64 << 10

// templateFunctions are the functions of a valuesTemplate: those of renderer gotemplate, which a
// test compares, and of Go's templates.
var templateFunctions = functionNames(`
	Image abbrev abbrevboth add add1 add1f addf adler32sum ago all and any append atoi b32dec b32enc b64dec b64enc base bcrypt
	biggest buildCustomCert call camelcase cat ceil chunk clean coalesce compact concat contains date dateInZone dateModify
	date_in_zone date_modify decryptAES deepCopy deepEqual default derivePassword dict dig dir div divf duration durationRound
	empty encryptAES eq ext fail first float64 floor fromJson ge genCA genCAWithKey genPrivateKey genSelfSignedCert
	genSelfSignedCertWithKey genSignedCert genSignedCertWithKey get gt has hasKey hasPrefix hasSuffix hello html htmlDate
	htmlDateInZone htpasswd indent index initial initials int int64 isAbs join js kebabcase keys kindIs kindOf last le len list
	lower lt max maxf merge mergeOverwrite min minf mod mul mulf mustAppend mustChunk mustCompact mustDateModify mustDeepCopy
	mustFirst mustFromJson mustHas mustInitial mustLast mustMerge mustMergeOverwrite mustPrepend mustPush mustRegexFind
	mustRegexFindAll mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral mustRegexSplit mustRest mustReverse
	mustSlice mustToDate mustToJson mustToPrettyJson mustToRawJson mustUniq mustWithout must_date_modify ne nindent nospace not
	now omit or osBase osClean osDir osExt osIsAbs pick pluck plural prepend print printf println push quote randAlpha
	randAlphaNum randAscii randBytes randInt randNumeric regexFind regexFindAll regexMatch regexQuoteMeta regexReplaceAll
	regexReplaceAllLiteral regexSplit repeat replace rest reverse round semver semverCompare seq set sha1sum sha256sum
	sha512sum shuffle slice snakecase sortAlpha split splitList splitn squote sub subf substr swapcase ternary title toDate
	toDecimal toJson toPrettyJson toRawJson toString toStrings trim trimAll trimPrefix trimSuffix trimall trunc tuple typeIs
	typeIsLike typeOf uniq unixEpoch unset until untilStep untitle upper urlJoin urlParse urlquery uuidv4 values without wrap
	wrapWith
`)

func functionNames(text string) map[string]any {
	names := map[string]any{}
	for name := range strings.FieldsSeq(text) {
		names[name] = true // the parser only checks that it exists
	}
	return names
}

const templateField = "valuesTemplate"

// templateProblem is an error of text/template/parse: "template: NAME:LINE: text".
var templateProblem = regexp.MustCompile(`(?s)^template: \S+?:(\d+):(?:\d+:)? (.*)$`)

// CheckTemplate parses a version's valuesTemplate without running it. CheckVersion does not call
// it: a template admitted earlier must not make its whole catalogue invalid. Field and error are as
// in CheckVersion.
func CheckTemplate(version *kubermaticv1.AddonVersion) (field string, err error) {
	if err := ParseTemplate(version.ValuesTemplate); err != nil {
		return templateField, err
	}
	return "", nil
}

// ParseTemplate parses a valuesTemplate without running it. The error names the problem and the line.
func ParseTemplate(template string) error {
	if len(template) > maxTemplateBytes {
		return &TemplateError{fmt.Sprintf("it has %d bytes, more than %d: shorten it", len(template), maxTemplateBytes)}
	}
	_, err := parse.Parse(templateField, template, "", "", templateFunctions)
	if err == nil {
		return nil
	}
	const longest = 200
	problem := err.Error()
	if match := templateProblem.FindStringSubmatch(problem); match != nil {
		problem = fmt.Sprintf("line %s: %s", match[1], match[2])
	}
	return &TemplateError{text.Cut(problem, longest)}
}

// TemplateError says that a valuesTemplate can't be parsed.
type TemplateError struct{ problem string }

func (e *TemplateError) Error() string { return e.problem }
