package identity

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/identity/password"
)

func TestOptions(t *testing.T) {
	s := open(t, newMemory(), Options{})
	assert.Equal(t, max(1, runtime.GOMAXPROCS(0)/2), s.options.HashesMax, "slots")
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
	} {
		_, err := start(o, newMemory())
		assert.Error(t, err, "%s: got no error", name)
	}
}
