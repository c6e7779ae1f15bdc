package persistence

import (
	"fmt"
	"testing"

	"github.com/rs/zerolog"
)

type waitFor chan error

func (w waitFor) Committed(err error) { w <- err }

func TestSmoke(t *testing.T) {
	dir := t.TempDir() + "/data"
	log := zerolog.New(zerolog.NewTestWriter(t))
	for round := range 3 {
		s, err := Open(dir, Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			w := s.NewWrites(1)
			w.Set(RecordKey(nil, 1, "wf", ID{byte(round), byte(i)}), []byte(fmt.Sprint(i)))
			w.Add(CountKey(nil, 1, "wf", 1), 1)
			c := make(waitFor, 1)
			s.Append(w, c)
			if err := <-c; err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Fence(); err != nil {
			t.Fatal(err)
		}
		n, err := s.Count(CountKey(nil, 1, "wf", 1))
		if err != nil || n != int64(100*(round+1)) {
			t.Fatal(n, err)
		}
		if _, err := Open(dir, Options{}); err == nil {
			t.Fatal("opened twice")
		} else {
			t.Log(err)
		}
		t.Logf("%+v", s.Metrics())
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
