package formportal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/form"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine/document"
)

func ids(list []*Template) string {
	var out []string
	for _, t := range list {
		out = append(out, t.ID)
	}
	return strings.Join(out, " ")
}

// TestARefusedSetChangesNothing: an id that is there twice, and a store that is closed.
func TestARefusedSetChangesNothing(t *testing.T) {
	h := emptyHouse(t)
	h.mustPublish(source(t, leaveForm))
	twin := source(t, plainFile(""))
	twin.File = "forms/g.yaml"
	err := h.publish(source(t, plainFile("")), source(t, safety), twin)
	var faults document.Faults
	assert.True(t, errors.As(err, &faults) && err.Error() == "forms/g.yaml:1:1: form f is also in forms/f.yaml", "got %v", err)
	h.stop()
	h.End()
	assert.Error(t, h.publish(source(t, safety)), "a set was taken without being written")
	assert.True(t, h.templates.Len() == 1 && h.templates.Get(form.KindForm, "leave-form") != nil, "a part of a refused set is in use")
}

func TestTooMuchTextIsRefused(t *testing.T) {
	var set []TemplateSource
	for n := range 17 {
		one := source(t, strings.Replace(plainFile(""), "id: f", fmt.Sprintf("id: f%d", n), 1))
		one.Text = append(one.Text, bytes.Repeat([]byte("#"), 1<<20)...)
		set = append(set, one)
	}
	assert.Empty(t, CheckTemplates(set[:15]), "15 MiB")
	faults := CheckTemplates(set)
	assert.True(t, len(faults) == 1 && faults[0].File == "forms/f16.yaml", "17 MiB: got %v, want one fault", faults)
}

// TestNothingAcceptedStopsAStart holds persistence/PROMISES.md, "P14": a kept
// template that this program cannot read any more is left out, and the others go on.
func TestNothingAcceptedStopsAStart(t *testing.T) {
	h := emptyHouse(t)
	h.mustPublish(source(t, leaveForm), source(t, safety))
	k := key.Setting(nil, templatesSetting)
	row, err := h.Store.Load(k)
	require.NoError(t, err)
	for _, spoilt := range []string{
		strings.Replace(string(row), "id: leave-form", "idea: leave-form", 1), // of a stricter program
		strings.Replace(string(row), `"address.schema.json":"`, `"other.json":"`, 1),
		strings.Replace(string(row), `"kind":"form"`, `"kind":"survey"`, 1), // of a newer one
	} {
		require.NotEqual(t, string(row), spoilt, "the row is not what the test takes it for")
		h.Overwrite(key.Meta, k, []byte(spoilt))
		before := h.Log.Count("forms/leave-form.yaml")
		h.restart()
		logged := h.Log.Count("forms/leave-form.yaml")
		assert.True(t, h.templates.Len() == 1 && h.templates.Get(form.KindChecklist, "safety") != nil && logged != before, "%v %v %v", h.templates.Len(), logged, before)
	}
	h.Overwrite(key.Meta, k, []byte("{"))
	_, err = OpenTemplates(h.Store, zerolog.Nop())
	assert.ErrorIs(t, err, persistence.ErrCorrupt, "a row that is no JSON")
}

// TestASetOfUnknownOutcomeDoesNotComeBack: its write may reach the disk after it
// was given up; the set before, published again, has to be written over it.
func TestASetOfUnknownOutcomeDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := emptyHouse(t)
		before, after := source(t, leaveForm), source(t, safety)
		h.mustPublish(before)
		// NB: the router would wait for the catalog's lock, and the clock stand still.
		h.stop()
		require.NoError(t, h.Router.Stop(t.Context()))
		h.Disk.Hold()
		require.ErrorIs(t, h.publish(after), persistence.ErrOutcomeUnknown, "while the disk hangs")
		h.Disk.Release()
		storetest.AwaitAccepting(t, h.Store, true)
		h.mustPublish(before)
		h.restart()
		assert.True(t, h.templates.Get(form.KindForm, "leave-form") != nil && h.templates.Get(form.KindChecklist, "safety") == nil)
	})
}
