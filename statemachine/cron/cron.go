// Package cron knows when schedules are due: five fields (minute, hour, day of the month, month, day of the week) of a wall
// clock in some zone.
//
// A wall clock skips times and shows others twice when daylight saving begins and ends. A time that does not exist is due at the
// next that does, and one that comes twice is due the first time, as users of cron expect (crontab(5) of Debian).
//
// It reads no clock and no files: the zone comes in as a value.
package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Spec is a cron expression. It never changes.
type Spec struct{ spec *cron.SpecSchedule }

// ErrNever: the expression is right, and no day is like that.
var ErrNever = errors.New("it is never due")

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// Parse reads an expression of five fields, with names of months and days, lists, ranges and steps.
func Parse(text string) (*Spec, error) {
	if n := len(strings.Fields(text)); n != 5 {
		return nil, fmt.Errorf("it has five fields, minute, hour, day of the month, month and day of the week, not %d", n)
	}
	if strings.Contains(text, "=") { // NB: the library takes a zone in front
		return nil, errors.New("a zone has a key of its own")
	}
	parsed, err := parser.Parse(text)
	if err != nil {
		return nil, fieldFault(text, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("it has no five fields")
	}
	spec.Location = time.UTC // the wall clock as it stands
	s := &Spec{spec}
	if s.nextWall(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, ErrNever
	}
	return s, nil
}

// fields are those of an expression, in order, and what each takes.
var fields = [5][2]string{
	{"minute", "0 to 59"}, {"hour", "0 to 23"}, {"day of the month", "1 to 31"}, {"month", "1 to 12, or JAN to DEC"}, {"day of the week", "0 (Sunday) to 6, or SUN to SAT"},
}

func fieldFault(text string, err error) error {
	for i, field := range strings.Fields(text) {
		alone := [5]string{"*", "*", "*", "*", "*"}
		alone[i] = field
		if _, wrong := parser.Parse(strings.Join(alone[:], " ")); wrong != nil {
			return fmt.Errorf("%.40q is no %s: that is %s, and *, lists (1,3), ranges (1-3) and steps (*/2)", field, fields[i][0], fields[i][1])
		}
	}
	return err
}

// nextWall is the next time of a wall clock, both written as if they were UTC. The library looks five years ahead; the
// 29th of February can be eight years away.
func (s *Spec) nextWall(wall time.Time) time.Time {
	for range 2 {
		if next := s.spec.Next(wall); !next.IsZero() {
			return next
		}
		wall = wall.AddDate(4, 0, 0)
	}
	return time.Time{}
}

// skipMax is more than any clock has ever been set in a zone.
const skipMax = 25 * time.Hour

// Next is the first time behind after at which it is due in a zone; zero when there is none.
func (s *Spec) Next(after time.Time, zone *time.Location) (next time.Time) {
	s.Each(after, zone, func(at time.Time) bool {
		next = at
		return false
	})
	return next
}

// Each calls visit with the times behind after, one after the other, until it says that it has enough.
func (s *Spec) Each(after time.Time, zone *time.Location, visit func(at time.Time) (more bool)) {
	at := after.In(zone)
	wall := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
	if set, _ := at.ZoneBounds(); !set.IsZero() && after.Sub(set) < 2*skipMax { // else all that the clock has shown lies before
		wall = wall.Add(-skipMax)
	}
	for {
		if wall = s.nextWall(wall); wall.IsZero() {
			return
		}
		next := instant(wall, zone)
		if !next.After(after) {
			continue
		}
		if after = next; !visit(next) {
			return
		}
	}
}

// instant is when a wall clock shows a time first; when it skips it, the moment of that.
func instant(wall time.Time, zone *time.Location) time.Time {
	_, before := wall.Add(-skipMax).In(zone).Zone()
	_, behind := wall.Add(skipMax).In(zone).Zone()
	first := wall.Add(-time.Duration(max(before, behind)) * time.Second).In(zone)
	if shows(first, wall) {
		return first
	}
	if second := wall.Add(-time.Duration(min(before, behind)) * time.Second).In(zone); shows(second, wall) {
		return second
	}
	// NB: what lies behind the transition by the clock from before it.
	skipped, _ := wall.Add(-time.Duration(before) * time.Second).In(zone).ZoneBounds()
	return skipped
}

func shows(at, wall time.Time) bool {
	return at.Hour() == wall.Hour() && at.Minute() == wall.Minute() && at.Day() == wall.Day()
}
