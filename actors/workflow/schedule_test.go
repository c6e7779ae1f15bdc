package workflow_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/quota"
	"troupe/actors/schedule"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

// The bubble's clock begins at midnight of 2000-01-01, in UTC.
const nightly = `
id: nightly
create: {svcPublic: false}
allow: {create: {roles: [clerk]}}
schedules:
  hourly: {cron: '0 * * * *', create: {svcPublic: {at: '${now}'}}}
  daily: {cron: '0 3 * * *', zone: Europe/Berlin, missed: skip}
  every: {cron: '*/10 * * * *', missed: all, as: clara}
  failing: {cron: '30 1 * * *', create: {svcPublic: {bad: true}}}
stateMachines:
  main:
    initial: open
    states:
      open: {entry: [{assign: {svcPublic.by: '${user.id}'}}, {if: 'has(svcPublic.bad)', then: [{assign: {svcPublic.x: '${1 / 0}'}}]}], on: {go: end}}
      end: {type: final}
`

// clara is a user, who has such roles, and with none is gone.
type clara struct {
	now atomic.Pointer[identity.Principal]
}

func (c *clara) has(roles ...string) {
	if len(roles) == 0 {
		c.now.Store(nil)
		return
	}
	c.now.Store(&identity.Principal{ID: "clara", Roles: roles})
}

func scheduled(t *testing.T, test func(h *harness, of *clara)) {
	t.Helper()
	scheduledWith(t, quota.Limits{}, test)
}

func scheduledWith(t *testing.T, limits quota.Limits, test func(h *harness, of *clara)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		of := &clara{}
		of.has("clerk")
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Quotas: limits, Clock: time.Now, Principal: func(user identity.UserID) *identity.Principal {
			if user == "clara" {
				return of.now.Load()
			}
			return nil
		}}, Disk: storetest.NewDisk()}), t}
		h.Publish(nightly)
		test(h, of)
		h.End()
	})
}

// runs are the instances of nightly: by whom, or for when.
func (h *harness) runs() (hourly, clara, others int) {
	h.t.Helper()
	for _, i := range h.Instances("nightly") {
		switch public := string(i.Record.Public); {
		case strings.Contains(public, `"at":"2000-01-`):
			hourly++
		case strings.Contains(public, `"by":"clara"`):
			clara++
		default:
			others++
		}
	}
	return hourly, clara, others
}

func (h *harness) schedule(name string) schedule.State {
	h.t.Helper()
	list, err := h.Schedules(context.Background())
	h.Must(err)
	for _, s := range list {
		if s.Name == name {
			return s
		}
	}
	h.t.Fatalf("there is no schedule %s", name)
	return schedule.State{}
}

func TestSchedulesCreateInstances(t *testing.T) {
	scheduled(t, func(h *harness, _ *clara) {
		clocktest.Advance(2*time.Hour + time.Second)
		hourly, clara, others := h.runs()
		assert.True(t, hourly == 2 && clara == 12 && others == 1, "%v %v %v", hourly, clara, others)
		if s := h.schedule("failing"); !strings.Contains(s.LastError, "division by zero") || !s.Last.IsZero() {
			t.Errorf("the one that fails: %+v", s)
		}
		s := h.schedule("daily")
		want := time.Date(2000, 1, 2, 2, 0, 0, 0, time.UTC)
		assert.True(t, s.Next.Equal(want) && s.Last.Hour() == 2 && s.Zone == "Europe/Berlin", "the daily one: %+v, want it next at %s", s, want)
	})
}

func TestMissedRuns(t *testing.T) {
	scheduled(t, func(h *harness, _ *clara) {
		clocktest.Advance(time.Second)
		h.End()
		clocktest.Advance(5*time.Hour + 30*time.Second)
		h.Begin()
		clocktest.Advance(time.Second)
		// Hourly: the one of 5 h was not missed, and those before are one. Daily: missed. Every ten minutes: all.
		hourly, clara, others := h.runs()
		assert.True(t, hourly == 2 && clara == 30 && others == 0, "%v %v %v", hourly, clara, others)
		h.End()
		clocktest.Advance(10 * 24 * time.Hour)
		h.Begin()
		clocktest.Advance(time.Second)
		_, clara, _ = h.runs()
		assert.Equal(t, 30+100+1, clara, "after ten days clara")
	})
}

func TestASchedulesUser(t *testing.T) {
	scheduled(t, func(h *harness, of *clara) {
		of.has("guest")
		clocktest.Advance(10*time.Minute + time.Second)
		s := h.schedule("every")
		assert.False(t, !strings.Contains(s.LastError, "access denied") && !strings.Contains(s.LastError, "may not create"), "without the right: %q", s.LastError)
		of.has()
		clocktest.Advance(10 * time.Minute)
		assert.Contains(t, h.schedule("every").LastError, "no user clara", "without the user")
		of.has("clerk")
		clocktest.Advance(10 * time.Minute)
		s = h.schedule("every")
		assert.True(t, s.LastError == "" && !s.Last.IsZero(), "with the right: %+v", s)
	})
}

func TestAPersonChangesSchedules(t *testing.T) {
	scheduled(t, func(h *harness, of *clara) {
		h.Must(h.ChangeSchedule("nightly", "every", schedule.Pause))
		h.Restart()
		clocktest.Advance(time.Hour)
		s := h.schedule("every")
		assert.True(t, s.Paused && s.Next.IsZero(), "paused: %+v", s)
		h.Must(h.ChangeSchedule("nightly", "every", schedule.Resume))
		clocktest.Advance(time.Second)
		_, clara, _ := h.runs()
		assert.Zero(t, clara, "were made up for, although nothing is missed by a pause")
		h.Must(h.ChangeSchedule("nightly", "every", schedule.Run))
		h.Must(h.ChangeSchedule("nightly", "every", schedule.Run))
		if _, clara, _ := h.runs(); clara != 1 { // NB: no time has passed between the two
			t.Errorf("%d were run by hand, want 1", clara)
		}
		of.has()
		err := h.ChangeSchedule("nightly", "every", schedule.Run)
		assert.False(t, !errors.Is(err, failure.ErrForbidden) && err != nil, "without the user: %v", err)
		assert.ErrorIs(t, h.ChangeSchedule("nightly", "none", schedule.Run), failure.ErrNotFound)
		assert.ErrorIs(t, h.ChangeSchedule("none", "every", schedule.Pause), failure.ErrNotFound)
	})
}

// TestSchedulesHaveAQuotaOfTheirOwn: runs beyond it are made later, although the schedules leave out what they miss, and users keep theirs.
func TestSchedulesHaveAQuotaOfTheirOwn(t *testing.T) {
	scheduledWith(t, quota.Limits{CreatesPerSecond: 1. / 60}, func(h *harness, of *clara) {
		h.Publish(nightly, `
id: minutely
schedules:
  a: {cron: '* * * * *', missed: skip, as: clara, create: {svcPublic: {due: '${now}'}}}
  b: {cron: '* * * * *', missed: skip, as: clara, create: {svcPublic: {due: '${now}'}}}
stateMachines: {main: {initial: open, states: {open: {on: {go: end}}, end: {type: final}}}}
`)
		clocktest.Advance(5*time.Minute + time.Second)
		due := map[string]int{}
		for _, i := range h.Instances("minutely") {
			due[string(i.Record.Public)]++
		}
		n := len(h.Instances("minutely"))
		assert.True(t, n == 5 && due[`{"due":"2000-01-01T00:01:00Z"}`] == 2 && due[`{"due":"2000-01-01T00:02:00Z"}`] == 2, "%v %v", n, due)
		_, err := h.Create(t.Context(), &message.Create{Caller: of.now.Load(), WorkflowID: "nightly"})
		assert.NoError(t, err, "a create of the user whom the schedules name")
	})
}

// TestARunIsMadeOnce, although the power fails in the middle of it, again and again.
func TestARunIsMadeOnce(t *testing.T) {
	crashes := 40
	if testing.Short() {
		crashes = 12
	}
	scheduled(t, func(h *harness, _ *clara) {
		for n := range crashes {
			clocktest.Advance(10*time.Minute - time.Until(time.Now().Truncate(10*time.Minute).Add(10*time.Minute))%(10*time.Minute))
			h.crashAt(n % 4)
		}
		clocktest.Advance(20 * time.Minute)
		passed := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
		if _, clara, _ := h.runs(); clara != int(passed/(10*time.Minute)) || h.made("nightly") != h.count("nightly") {
			t.Errorf("%d runs in %s, and %d instances that were made %d times", clara, passed, h.count("nightly"), h.made("nightly"))
		}
		assert.Equal(t, 4, h.rows(key.SchedulePrefix), "rows")
	})
}

// TestOtherTimesOfAScheduleMissNothing: what would have been due before they were given is not made up for.
func TestOtherTimesOfAScheduleMissNothing(t *testing.T) {
	scheduled(t, func(h *harness, _ *clara) {
		clocktest.Advance(90 * time.Minute)
		before, _, _ := h.runs()
		h.Publish(strings.Replace(strings.Replace(nightly, "0 * * * *", "15 * * * *", 1), "id: nightly\n", "id: nightly\nversion: 2\n", 1))
		clocktest.Advance(10 * time.Minute)
		now, _, _ := h.runs()
		assert.Equal(t, before, now, "instances for the time before, want none")
		clocktest.Advance(time.Hour)
		now, _, _ = h.runs()
		assert.Equal(t, before+1, now, "%d instances in an hour, want 1", now-before)
	})
}
