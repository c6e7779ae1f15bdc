package catalog

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine"
)

// TestAStartCompilesNothing: what is stored is compiled when it is first needed, and only that.
func TestAStartCompilesNothing(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	const versions = 40
	for n := range versions {
		c.publishSingle(t, strings.Replace(door, "version: 1", fmt.Sprintf("version: %d", n+1), 1))
	}
	must(t, c.Publish(c.sources(t, plain)))
	timed := strings.Replace(door, "id: door", "id: timed\nschedules: {daily: {cron: '0 7 * * *'}}", 1)
	c.publishSingle(t, timed)

	c = openCatalog(t, store)
	compiled := func(when string, want int) {
		t.Helper()
		assert.Equal(t, want, c.versions.Size(), when)
	}
	compiled("opened", 0)
	must(t, c.Reload())
	compiled("reloaded", 0)
	all := c.Schedules()
	assert.True(t, len(all) == 1 && all[0].Workflow == "timed", "got the schedules %v", all)
	compiled("the one that has schedules", 1)
	_, err := c.Version("door", 7)
	assert.NoError(t, err)
	compiled("an old version of an instance", 2)
	for range 2 {
		pin, err := c.Pin("door")
		must(t, err)
		assert.Equal(t, uint64(versions), pin.Definition().Version, "got version")
		pin.Release()
	}
	compiled("the newest one", 3)
	assert.Len(t, c.Choices(&statemachine.Caller{ID: "john.doe"}, time.Unix(0, 0)), 3, "got the choices")
	compiled("the newest of all", 4)
	c.publishSingle(t, strings.Replace(door, "version: 1", "version: 41", 1))
	for workflow, want := range map[string]uint64{"door": 41, "plain": 1} {
		d, err := c.Creatable(workflow)
		assert.True(t, err == nil && d.Version == want, "%s: got %v, %v, want version %d", workflow, d, err, want)
	}
}

// TestSchedulesAreLookedForOnce in the text of a version that was not read yet: whoever runs them asks every second.
func TestSchedulesAreLookedForOnce(t *testing.T) {
	store := openStore(t)
	const size = 512 << 10
	openCatalog(t, store).publishSingle(t, door+"# "+strings.Repeat("x", size)+"\n")
	c := openCatalog(t, store)
	look := func() (allocated uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 20 {
			assert.Empty(t, c.Schedules())
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	assert.LessOrEqual(t, look(), uint64(10*size), "20 looks read, %d", size)
	assert.Zero(t, c.versions.Size(), "versions are compiled")
	c.publishSingle(t, strings.Replace(door, "version: 1", "version: 2\nschedules: {daily: {cron: '0 7 * * *'}}", 1))
	assert.Len(t, c.Schedules(), 1)
}
