package statemachine

import (
	"fmt"
	"strings"
	"testing"

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
		if err != nil {
			t.Fatal(err)
		}
		if got := placesOf(d.Mismatches(EventName(c.event), sent)); got != c.want {
			t.Errorf("%s, %s: got %q, want %q", c.event, c.sent, got, c.want)
		}
	}
	if d.Mismatches("submit", nil) != nil {
		t.Error("without a schema there are misfits")
	}
	if got := fmt.Sprint(d.Indexes); got != "[svcPublic.a svcPrivate.b.c]" {
		t.Errorf("indexes: got %s", got)
	}
}
