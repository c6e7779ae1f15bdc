package sourcetest

import (
	"testing"

	"go.uber.org/goleak"

	"troupe/actors/repository"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	Run(t, func(*testing.T) (repository.Source, Editor) {
		m := NewMemory()
		return m, m
	})
}
