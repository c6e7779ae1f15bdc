package statemachine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

// placesOf lists the places of mismatches: ? stands before what may be left out, and - before what is missing.
func placesOf(mismatches []schema.Mismatch) string {
	var places []string
	for _, m := range mismatches {
		mark := ""
		switch {
		case m.Optional:
			mark = "?"
		case m.Missing:
			mark = "-"
		}
		places = append(places, mark+strings.Join(m.Path, "."))
	}
	return strings.Join(places, " ")
}

// TestMisfitsOfAnEvent holds statemachine/DEFINITION.md, "Event data", for the schema of
// a form that is sent with an event.
func TestMisfitsOfAnEvent(t *testing.T) {
	d := parseChart(t, `
id: w
indexes: [svcPublic.a, svcPrivate.b.c]
events:
  submit: {data: {required: [amount], properties: {amount: {}}, additionalProperties: false}}
  both: {private: true}
  whole: {into: svcPublic}
  free: {}
`+chartOfRights)
	for _, c := range []struct{ event, sent, want string }{
		{"submit", `{"properties":{"amount":{}},"required":["amount"]}`, ""},
		{"submit", `{"properties":{"amount":{}}}`, "?amount"},
		{"submit", `{"properties":{"note":{}}}`, "note -amount"},
		{"free", `{"properties":{"svcPublic":{}}}`, ""},
		{"free", `{"properties":{"svcPublic":{},"other":{}}}`, "svcPublic"},
		{"free", `{"properties":{"svcPrivate":{}}}`, "svcPrivate"},
		{"both", `{"properties":{"svcPrivate":{},"svcPublic":{}}}`, ""},
		{"whole", `{"properties":{"svcPublic":{}}}`, "svcPublic"},
		{"unknown", `{"properties":{"anything":{}}}`, ""},
	} {
		sent, err := schema.Compile(data.Value(c.sent), nil)
		require.NoError(t, err)
		assert.Equal(t, c.want, placesOf(d.Mismatches(EventName(c.event), sent)), "%v %v", c.event, c.sent)
	}
	assert.Nil(t, d.Mismatches("submit", nil), "without a schema there are misfits")
	assert.Equal(t, "[svcPublic.a svcPrivate.b.c]", fmt.Sprint(d.Indexes), "indexes")
}
