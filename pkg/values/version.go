package values

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template/parse"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// CheckVersion checks what a catalogue says about the values of one version: the values themselves, and a form whose fields
// lead somewhere and whose defaults are what they ought to be. It is for catalogue.Read, which calls it for admission and
// for the merge alike. Field is the path of what is wrong below the version; a nil error means that nothing is.
func CheckVersion(version *kubermaticv1.AddonVersion) (field string, err error) {
	if version.Values != nil {
		if _, err := Decode(version.Values.Raw); err != nil {
			return "values", fmt.Errorf("%w: mend or shorten them", err)
		}
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

// maxTemplateBytes of a valuesTemplate, as the schema has it: what comes from git did not pass the schema yet.
const maxTemplateBytes = 64 << 10

// templateFunctions are the names of the functions that a valuesTemplate may call: those of renderer gotemplate, a test of which
// compares, and those of Go's templates.
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
		names[name] = true // the parser looks only whether there is something
	}
	return names
}

const templateField = "valuesTemplate"

// templateProblem is an error of text/template/parse, which has no other form: "template: NAME:LINE: text".
var templateProblem = regexp.MustCompile(`(?s)^template: \S+?:(\d+):(?:\d+:)? (.*)$`)

// CheckTemplate parses the valuesTemplate of a version and runs nothing of it. It is for those who write catalogues, and no part of
// CheckVersion: one that was admitted before is not to take its whole catalogue with it. The field and the error are as CheckVersion's.
func CheckTemplate(version *kubermaticv1.AddonVersion) (field string, err error) {
	if len(version.ValuesTemplate) > maxTemplateBytes {
		return templateField, fmt.Errorf("it has %d bytes, more than %d: shorten it", len(version.ValuesTemplate), maxTemplateBytes)
	}
	_, err = parse.Parse(templateField, version.ValuesTemplate, "", "", templateFunctions)
	if err == nil {
		return "", nil
	}
	const longest = 200
	text := err.Error()
	if match := templateProblem.FindStringSubmatch(text); match != nil {
		text = fmt.Sprintf("line %s: %s", match[1], match[2])
	}
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return templateField, errors.New(text)
}
