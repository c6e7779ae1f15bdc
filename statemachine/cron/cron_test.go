package cron_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
	"troupe/statemachine/cron"
)

func TestNext(t *testing.T) {
	const layout = "2006-01-02 15:04 -0700"
	for _, c := range []struct{ cron, zone, after, next string }{
		{"0 7 1 * *", "Europe/Berlin", "2026-11-26 02:00 +0000", "2026-12-01 07:00 +0100"},
		{"0 7 1 * *", "UTC", "2026-12-01 07:00 +0000", "2027-01-01 07:00 +0000"},
		{"*/15 9-17 * * MON-FRI", "America/New_York", "2026-11-27 22:59 +0000", "2026-11-30 09:00 -0500"},
		{"0 0 29 2 *", "UTC", "2096-03-01 00:00 +0000", "2104-02-29 00:00 +0000"}, // 2100 has none
		// The clock is put forward from 2 to 3, and back from 3 to 2.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28 12:00 +0000", "2026-03-29 03:00 +0200"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-29 01:00 +0000", "2026-03-30 02:30 +0200"},
		{"15,45 2 * * *", "Europe/Berlin", "2026-03-28 12:00 +0000", "2026-03-29 03:00 +0200"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24 12:00 +0000", "2026-10-25 02:30 +0200"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25 00:30 +0000", "2026-10-26 02:30 +0100"},
		{"0 3 * * *", "Europe/Berlin", "2026-03-28 12:00 +0000", "2026-03-29 03:00 +0200"},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00 +0000", "2026-10-04 02:30 +1100"}, // by half an hour
		{"0 12 30 12 *", "Pacific/Apia", "2011-12-01 00:00 +0000", "2011-12-31 00:00 +1400"},      // the whole day was skipped
	} {
		zone, err := time.LoadLocation(c.zone)
		require.NoError(t, err)
		s, err := cron.Parse(c.cron)
		require.NoError(t, err)
		after, err := time.Parse(layout, c.after)
		require.NoError(t, err)
		assert.Equal(t, c.next, s.Next(after, zone).Format(layout), "%s in %s after %s", c.cron, c.zone, c.after)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"": "five fields", "* * * *": "five fields", "0 * * * * *": "five fields", "@daily": "five fields", "CRON_TZ=UTC 0 7 1 * *": "five fields",
		"CRON_TZ=UTC 0 7 1 *": "zone", "60 * * * *": `"60" is no minute: that is 0 to 59`, "x * * * *": `"x" is no minute`, "* 5-1 * * *": `"5-1" is no hour`, "* * */0 * *": `"*/0" is no day of the month`,
		"* * * 13 *": "JAN to DEC", "* * * * 7": "SUN to SAT",
	} {
		_, err := cron.Parse(text)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%q: got %v, want %q", text, err, want)
	}
	for _, never := range []string{"0 0 30 2 *", "0 0 31 4,6,9,11 *"} {
		_, err := cron.Parse(never)
		assert.ErrorIs(t, err, cron.ErrNever, never)
	}
}

// TestNextBesideEveryMinute compares with a clock that is looked at each minute.
func TestNextBesideEveryMinute(t *testing.T) {
	var zones []*time.Location
	for _, name := range []string{"UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu"} {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		zones = append(zones, zone)
	}
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		minute, hour := rapid.IntRange(0, 59).Draw(t, "minute"), rapid.IntRange(0, 4).Draw(t, "hour")
		s, err := cron.Parse(strings.Join([]string{itoa(minute), itoa(hour), "*", "*", "*"}, " "))
		require.NoError(t, err)
		// Around the nights in which these zones change their clocks.
		night := rapid.SampledFrom([]time.Time{
			time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC), time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC),
			time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC), time.Date(2026, 4, 4, 12, 0, 0, 0, time.UTC), time.Date(2026, 10, 3, 12, 0, 0, 0, time.UTC),
		}).Draw(t, "night")
		after := night.Add(time.Duration(rapid.IntRange(0, 48*60).Draw(t, "after")) * time.Minute)
		got := s.Next(after, zone)
		if want := slow(after, zone, hour, minute); !got.Equal(want) {
			t.Fatalf("%d:%02d in %s after %s: got %s, want %s", hour, minute, zone, after, got.In(zone), want.In(zone))
		}
	})
}

// slow looks at every minute: it is due when the clock shows the time for the first time that day, or has just skipped it.
func slow(after time.Time, zone *time.Location, hour, minute int) time.Time {
	wanted := hour*60 + minute
	seen := map[int]bool{} // days on which it was due
	for at := after.Add(-72 * time.Hour).Truncate(time.Minute); ; at = at.Add(time.Minute) {
		now, before := at.In(zone), at.Add(-time.Minute).In(zone)
		clock, was := now.Hour()*60+now.Minute(), before.Hour()*60+before.Minute()
		due := clock == wanted || clock > was+1 && was < wanted && wanted < clock
		if !due || seen[now.YearDay()] {
			continue
		}
		seen[now.YearDay()] = true
		if at.After(after) {
			return at
		}
	}
}

func itoa(n int) string { return string(rune('0'+n/10)) + string(rune('0'+n%10)) }
