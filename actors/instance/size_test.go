package instance

import (
	"reflect"
	"testing"
)

// TestAnAwakeInstanceIsSmall: Go sets aside 512 bytes for the actor's part, and 576 for one byte more. There are a million of them, and the
// collector looks through each.
func TestAnAwakeInstanceIsSmall(t *testing.T) {
	of := reflect.TypeFor[Actor]()
	if of.Size() > 512 {
		t.Errorf("it has %d bytes, want 512 at most", of.Size())
	}
	row, _ := of.FieldByName("creatorRow")
	for k := range row.Type.NumField() {
		if f := row.Type.Field(k); f.Type.Kind() == reflect.Pointer {
			t.Errorf("it keeps %s of its row apart", f.Name)
		}
	}
}
