package values

import (
	"fmt"
	"testing"

	"cel.dev/cel-go/common/types"

	"troupe/statemachine/data"
)

// TestWalksThatNoExpressionTakes: cel-go may ask for the entries of an object and for the
// elements of a list in these ways as well.
func TestWalksThatNoExpressionTakes(t *testing.T) {
	o, walked := &Object{Raw: data.Value(`{"b":1,"a":2}`)}, ""
	o.Fold(folder(func(key, val any) { walked += fmt.Sprint(key, "=", val, " ") }))
	for it := o.Iterator(); it.HasNext() == types.True; {
		walked += fmt.Sprint(it.Next(), " ")
	}
	if want := "b=1 a=2 b a "; walked != want {
		t.Errorf("got %s, want %s", walked, want)
	}
	if got := (&List{Raw: data.Value("[1]")}).Get(types.Int(1)); !types.IsError(got) {
		t.Errorf("an element behind the end: got %v, want an error", got)
	}
}

// folder takes every entry.
type folder func(key, val any)

func (f folder) FoldEntry(key, val any) bool {
	f(key, val)
	return true
}
