package instance

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAnAwakeInstanceIsSmall: Go sets aside 512 bytes for the actor's part, and 576 for one byte more. There are a million of them, and the
// collector looks through each.
func TestAnAwakeInstanceIsSmall(t *testing.T) {
	of := reflect.TypeFor[Actor]()
	assert.LessOrEqual(t, of.Size(), uintptr(512))
	row, _ := of.FieldByName("creatorRow")
	for k := range row.Type.NumField() {
		f := row.Type.Field(k)
		assert.NotEqual(t, reflect.Pointer, f.Type.Kind(), "it keeps %s of its row apart", f.Name)
	}
}
