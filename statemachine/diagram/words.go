package diagram

import (
	"strconv"
	"strings"
	"time"
)

// phrases are what a picture says itself, in one language. The texts of the definition are not among them.
type phrases struct {
	after                         string // before a duration
	done, childDone, childFailed  string
	otherwise, always, runs       string
	now, been                     string // of the legend
	about, over                   string // before a number
	version, instance, everywhere string // below the heading
	chart, stands                 string // formats of the description
	units                         [4]unit
	point, group                  string // of numbers
}

// unit is one of a duration, behind "after".
type unit struct {
	of        time.Duration
	one, many string
}

var english = &phrases{
	after: "after ", done: "done", childDone: "child done", childFailed: "child failed", otherwise: "else", always: "always", runs: "runs ",
	now: "where it is now", been: "where it has been", about: "about ", over: "over ",
	version: " version ", instance: ", instance ", everywhere: ", with the instances of all versions",
	chart: "Statechart of %s with the state machines %s.", stands: " The instance %s stands at %s.",
	units: [...]unit{{24 * time.Hour, "day", "days"}, {time.Hour, "hour", "hours"}, {time.Minute, "minute", "minutes"}, {time.Second, "second", "seconds"}},
	point: ".", group: ",",
}

var german = &phrases{
	after: "nach ", done: "fertig", childDone: "Kind fertig", childFailed: "Kind gescheitert", otherwise: "sonst", always: "immer", runs: "führt aus: ",
	now: "steht jetzt hier", been: "war schon hier", about: "etwa ", over: "über ",
	version: " Version ", instance: ", Instanz ", everywhere: ", mit den Instanzen aller Versionen",
	chart: "Zustandsdiagramm von %s mit den Zustandsmaschinen %s.", stands: " Die Instanz %s steht bei %s.",
	units: [...]unit{{24 * time.Hour, "Tag", "Tagen"}, {time.Hour, "Stunde", "Stunden"}, {time.Minute, "Minute", "Minuten"}, {time.Second, "Sekunde", "Sekunden"}},
	point: ",", group: ".",
}

// words are the phrases of the first of the reader's languages that we have, else English.
func (p *Picture) words() *phrases {
	for _, tag := range p.Languages {
		switch language, _, _ := strings.Cut(strings.ToLower(tag), "-"); language {
		case "en":
			return english
		case "de":
			return german
		}
	}
	return english
}

// duration says one with its two largest units, as it stands behind after: "2 days", "1 hour 30 minutes".
func (w *phrases) duration(d time.Duration) string {
	if seconds := w.units[3]; d >= time.Second && d < time.Minute && d%time.Second != 0 {
		return strings.Replace(strconv.FormatFloat(d.Seconds(), 'f', -1, 64), ".", w.point, 1) + " " + seconds.many
	}
	var parts []string
	for _, unit := range w.units {
		n := int64(d / unit.of)
		if n == 0 || len(parts) == 2 {
			continue
		}
		name := unit.many
		if n == 1 {
			name = unit.one
		}
		parts = append(parts, strconv.FormatInt(n, 10)+" "+name)
		d %= unit.of
	}
	if len(parts) == 0 {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strings.Join(parts, " ")
}
