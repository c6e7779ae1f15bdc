package script

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// planted are the mistakes in testdata/explore/planted, by file: the kind of the finding, and a part of its message that names the place.
var planted = map[string]struct{ kind, message string }{
	"stuck-expert":   {"stuck", "expertise"},
	"stuck-deadlock": {"stuck", "waiting, waiting"},
	"stuck-child":    {"stuck", "checking"},
	"stuck-director": {"stuck", "special"},
	"stuck-deadline": {"stuck", "offered"},

	"unreached-limit":    {"unreached", "the state main.board"},
	"unreached-both":     {"unreached", "the state shipping.express"},
	"unreached-timer":    {"unreached", "the state ticket.reminded"},
	"unreached-role":     {"unreached", "the transition posting.open freeze"},
	"unreached-delivery": {"unreached", "the transition main.draft ledger.failed"},

	"failure-average": {"failure", "send publish fails"},
	"failure-comment": {"failure", "send reject fails"},
	"failure-answer":  {"incident", "bank.paid fails"},
	"failure-output":  {"incident", "done.invoke.scanning fails"},
	"failure-due":     {"failure", "send plan fails"},

	"schema-total":  {"failure", "send submit fails"},
	"schema-rounds": {"failure", "send back fails"},
	"schema-status": {"incident", "after.P7D.waiting fails"},
	"schema-weight": {"incident", "done.invoke.weighing fails"},

	"task-auditor":  {"task", "year.audit"},
	"task-legal":    {"task", "contract.examined"},
	"task-self":     {"task", "main.second"},
	"task-mismatch": {"task", "order.budget"},
	"task-unseen":   {"task", "order.picking"},

	"loop-retry": {"failure", "send try fails"},
	"loop-echo":  {"failure", "send change fails"},
	"loop-poll":  {"incident", "after.PT0.5S.polling"},
	"loop-send":  {"incident", "next"},
	"loop-child": {"incident", "done.invoke.checking"},
}

// TestExplorationFindsPlantedMistakes explores workflows with a mistake each, and those with none: each mistake is found where it is, what is
// found is a test that fails, the same seed finds the same, and in the others nothing is found.
func TestExplorationFindsPlantedMistakes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	known := homeIn(t, "testdata/explore", "*/*.yaml")
	names := map[string]bool{}
	for _, workflow := range known.Workflows() {
		names[workflow] = true
		t.Run(workflow, func(t *testing.T) {
			want, isPlanted := planted[workflow]
			o := Exploration{Walks: 200, Steps: 50, Seed: 7}
			if isPlanted { // NB: what is there is found early
				o.Walks = 50
			}
			got := Explore(known, workflow, o)
			for _, f := range got.Findings {
				file, err := Parse("found.yaml", []byte(f.Test), known)
				require.NoError(t, err, f.Test)
				assert.NotNil(t, Run(file.Tests[0], Options{Known: known}).Failure, "the test of a finding passes:\n%s", f.Test)
				if !isPlanted {
					t.Errorf("%s: %s\n%s", f.Kind, f.Message, f.Test)
				}
			}
			if !isPlanted {
				return
			}
			assert.True(t, slices.ContainsFunc(got.Findings, func(f *Finding) bool { return f.Kind == want.kind && strings.Contains(f.Message, want.message) }),
				"no %s in %s: found %s", want.kind, want.message, told(got.Findings))
			for _, f := range got.Findings {
				assert.True(t, f.Kind == want.kind || f.Kind == "unreached", "there is no other mistake: %s", told(got.Findings))
			}
			assert.Equal(t, got, Explore(known, workflow, o), "the same seed finds the same")
		})
	}
	for name := range planted {
		assert.True(t, names[name], name)
	}
}

func told(findings []*Finding) string {
	var b strings.Builder
	for _, f := range findings {
		b.WriteString("\n" + f.Kind + ": " + f.Message + "\n" + f.Test)
	}
	return cmp.Or(b.String(), "nothing")
}
