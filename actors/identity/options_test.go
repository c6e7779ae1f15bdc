package identity

import (
	"runtime"
	"testing"
	"time"

	"troupe/actors/identity/password"
)

func TestOptions(t *testing.T) {
	s := open(t, newMemory(), Options{})
	if got := s.options.HashesMax; got != max(1, runtime.GOMAXPROCS(0)/2) {
		t.Errorf("slots: got %d, want one for every second core", got)
	}
	for name, o := range map[string]Options{
		"no memory":       {PasswordCost: password.Cost{MemoryKiB: 7, Passes: 1, Lanes: 1}},
		"no pass":         {PasswordCost: password.Cost{MemoryKiB: 8, Lanes: 1}},
		"no lane":         {PasswordCost: password.Cost{MemoryKiB: 8, Passes: 1}},
		"memory of lanes": {PasswordCost: password.Cost{MemoryKiB: 8, Passes: 1, Lanes: 2}},
		"too much memory": {PasswordCost: password.Cost{MemoryKiB: 2 << 20, Passes: 1, Lanes: 1}},
		"negative idle":   {SessionIdle: -1},
		"short sessions":  {SessionMax: time.Millisecond},
		"short flushes":   {FlushEvery: 1},
		"negative retain": {RetainEnded: -1},
		"no credentials":  {CredentialsMax: -1},
		"no slots":        {HashesMax: -1},
		"no queue":        {HashesWaitingMax: -1},
		"no attempts":     {AttemptsMax: -1},
	} {
		if _, err := start(o, newMemory()); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
