package catalog

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

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
		if n := c.versions.Size(); n != want {
			t.Errorf("%s: %d versions are compiled, want %d", when, n, want)
		}
	}
	compiled("opened", 0)
	must(t, c.Reload())
	compiled("reloaded", 0)
	if all := c.Schedules(); len(all) != 1 || all[0].Workflow != "timed" {
		t.Errorf("got the schedules %v", all)
	}
	compiled("the one that has schedules", 1)
	if _, err := c.Version("door", 7); err != nil {
		t.Error(err)
	}
	compiled("an old version of an instance", 2)
	for range 2 {
		pin, err := c.Pin("door")
		must(t, err)
		if pin.Definition().Version != versions {
			t.Errorf("got version %d", pin.Definition().Version)
		}
		pin.Release()
	}
	compiled("the newest one", 3)
	if all := c.Choices(&statemachine.Caller{ID: "john.doe"}, time.Unix(0, 0)); len(all) != 3 {
		t.Errorf("got the choices %v", all)
	}
	compiled("the newest of all", 4)
	c.publishSingle(t, strings.Replace(door, "version: 1", "version: 41", 1))
	c.wantCreatable(t, "published after a restart", "door", 41)
	c.wantCreatable(t, "a file of before", "plain", 1)
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
			if all := c.Schedules(); len(all) != 0 {
				t.Errorf("got %v", all)
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if n := look(); n > 10*size {
		t.Errorf("20 looks read %d bytes of a text with %d", n, size)
	}
	if n := c.versions.Size(); n != 0 {
		t.Errorf("%d versions are compiled", n)
	}
	c.publishSingle(t, strings.Replace(door, "version: 1", "version: 2\nschedules: {daily: {cron: '0 7 * * *'}}", 1))
	if all := c.Schedules(); len(all) != 1 {
		t.Errorf("got %v, want that of the next version", all)
	}
}
