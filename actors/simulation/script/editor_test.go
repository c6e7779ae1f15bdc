package script_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/actors/simulation/script"
	"troupe/statemachine/schematest"
)

func TestTheSchemaIsNeverStricterThanTheReader(t *testing.T) {
	known := office(t)
	f := schematest.New(t, script.FileSchema(), func(file []byte) error {
		_, err := script.Parse("t.json", file, known)
		return err
	})
	text, err := os.ReadFile("testdata/scripts/run.txt")
	require.NoError(t, err)
	var all []string
	for part := range strings.SplitSeq(string(text), "\n\n") {
		_, part, _ = strings.Cut(part, "\nfile\n")
		if file, _, found := strings.Cut(part, "----"); found {
			all = append(all, file)
		}
	}
	step := func(text string) string {
		return "workflow: trip\ntests: {t: {steps: [{as: ann, create: {}}, " + text + "]}}\n"
	}
	all = append(all,
		step("{expect: {tasks: {contains: Decide}, done: {oneOf: [true]}, states: {absent: false}}, in: trip}"),
		step("{answer: {webhook: bank, status: 0, body: [1]}, refused: 404}"), step("{complete: print, refused: true}"),
		step("{child: {workflow: booking, done: 1}, refused: true}"), step("{advance: 500ms, expect: {events: []}}"),
		strings.Replace(step("{as: bob, create: {workflow: booking}}"), "workflow:", "now: 2026-01-05T09:00:00+01:00\n$schema: x\nworkflow:", 1),
	)
	f.Takes(t, all...)
	f.IsNeverStricter(t, all...)
	slip := strings.Replace(script.FileSchema(), `"minimum": 0,`, `"minimum": 100,`, 1)
	schematest.New(t, slip, func([]byte) error { return nil }).IsStricter(t, 200, all...)
	f.Sees(t,
		"[]", "workflow: trip\n", "tests: {t: {steps: [{as: ann, create: {}}]}}\n", "workflow: trip\ntests: {}\n", "workflow: trip\ntests: {t: {}}\n",
		step("{}"), step("{as: ann, send: ask, answer: bank}"), step("{as: ann, sned: ask}"), step("{send: ask}"), step("{advance: 3}"),
		step("{answer: bank, status: 1000}"), step("{as: ann, send: ask, data: 3}"), step("{expect: {}}"), step("{expect: {state: {}}}"), step("{expect: {tasks: 3}}"),
		step("{fail: print, massage: x}"), step("{child: booking, dnoe: 1}"),
	)
	schematest.Describes(t, script.FileSchema())
}
