package author

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strconv"

	"troupe/actors/simulation/script"
)

// testJSON is a test in the JSON of the report (cmd/troupe/TESTS.md, "Reports").
type testJSON struct {
	File     string          `json:"file"`
	Line     int             `json:"line"`
	Workflow string          `json:"workflow"`
	Name     string          `json:"name"`
	Passed   bool            `json:"passed"`
	Seconds  float64         `json:"seconds"`
	Failure  *script.Failure `json:"failure,omitempty"`
}

func (r *testReport) json() ([]byte, error) {
	report := struct {
		Tests    []testJSON         `json:"tests"`
		Passed   int                `json:"passed"`
		Failed   int                `json:"failed"`
		Coverage []*script.Coverage `json:"coverage,omitempty"`
	}{Tests: []testJSON{}, Passed: len(r.results) - r.failed(), Failed: r.failed(), Coverage: r.coverage}
	for _, of := range r.results {
		report.Tests = append(report.Tests, testJSON{of.File, of.Line, of.Workflow, of.Name, of.Failure == nil, of.Duration.Seconds(), of.Failure})
	}
	return json.MarshalIndent(report, "", "  ")
}

// The elements of JUnit's reports that CI systems read.
type (
	junitSuites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Time     string   `xml:"time,attr"`
		Suites   []*junitSuite
	}
	junitSuite struct {
		XMLName  xml.Name `xml:"testsuite"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Time     string   `xml:"time,attr"`
		Cases    []junitCase
		seconds  float64
	}
	junitCase struct {
		XMLName xml.Name `xml:"testcase"`
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		File    string   `xml:"file,attr"`
		Line    int      `xml:"line,attr"`
		Time    string   `xml:"time,attr"`
		Failure *junitFailure
	}
	junitFailure struct {
		XMLName xml.Name `xml:"failure"`
		Message string   `xml:"message,attr"`
		Text    string   `xml:",chardata"`
	}
)

func (r *testReport) junit() ([]byte, error) {
	seconds := func(s float64) string { return strconv.FormatFloat(s, 'f', 6, 64) }
	all, sum := junitSuites{Tests: len(r.results), Failures: r.failed()}, 0.0
	var suite *junitSuite
	for _, of := range r.results {
		if suite == nil || suite.Name != of.File {
			suite = &junitSuite{Name: of.File}
			all.Suites = append(all.Suites, suite)
		}
		took := of.Duration.Seconds()
		c := junitCase{Name: of.Name, Class: of.Workflow, File: of.File, Line: of.Line, Time: seconds(took)}
		if f := of.Failure; f != nil {
			var text bytes.Buffer
			writeFailure(&text, of)
			c.Failure = &junitFailure{Message: f.Summary(), Text: text.String()}
			suite.Failures++
		}
		suite.Tests, suite.seconds, sum = suite.Tests+1, suite.seconds+took, sum+took
		suite.Time = seconds(suite.seconds)
		suite.Cases = append(suite.Cases, c)
	}
	all.Time = seconds(sum)
	text, err := xml.MarshalIndent(all, "", "  ")
	return append(append([]byte(xml.Header), text...), '\n'), err
}
