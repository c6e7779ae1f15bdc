package expr

import (
	"fmt"
	"testing"

	"cel.dev/cel-go/common/types"
	"github.com/stretchr/testify/assert"

	"troupe/statemachine/data"
	"troupe/statemachine/expr/internal/values"
)

// TestWalksThatNoExpressionTakes: cel-go may ask for the entries of an object and for the
// elements of a list in these ways as well.
func TestWalksThatNoExpressionTakes(t *testing.T) {
	o, walked := &values.Object{Raw: data.Value(`{"b":1,"a":2}`)}, ""
	o.Fold(folder(func(key, val any) { walked += fmt.Sprint(key, "=", val, " ") }))
	for it := o.Iterator(); it.HasNext() == types.True; {
		walked += fmt.Sprint(it.Next(), " ")
	}
	assert.Equal(t, "b=1 a=2 b a ", walked)
	got := (&values.List{Raw: data.Value("[1]")}).Get(types.Int(1))
	assert.True(t, types.IsError(got), "an element behind the end: got %v, want an error", got)
}

type folder func(key, val any)

func (f folder) FoldEntry(key, val any) bool {
	f(key, val)
	return true
}
