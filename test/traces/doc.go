// Package traces runs the managers as programs, with a collector of OpenTelemetry, and reads what they tell it: a pass of an
// installation is a story in testdata, and nothing that anybody wrote may be in the bytes.
package traces
