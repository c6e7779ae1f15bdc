package load

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Options says what a run does. Only Addr must be set; a zero field means its
// default.
type Options struct {
	// Addr is the server, "host:port".
	Addr string
	// Token is an API token of a user who may create, read and send. Empty: no
	// credential is sent.
	Token string

	// Connections is how many connections are kept open, each with one request
	// at a time. Default 64.
	Connections int
	// Instances is how many instances the events and reads go to, in turn; they
	// are created before the warm-up. Default 10,000. With fewer instances than
	// connections, connections share them: one is a hot instance.
	Instances int
	// Preload is how many events each instance gets before the warm-up, so that
	// its history is that long. Default none.
	Preload int
	// Mix is how often each kind is sent. Default only events.
	Mix Mix
	// Minimal asks for answers without history (Prefer: return=minimal).
	Minimal bool

	// Rate is how many requests a second are sent, whatever the answers do.
	// Zero is a closed loop.
	Rate float64
	// WarmUp is how long the load runs before it is measured. Default 1 s;
	// negative is not at all.
	WarmUp time.Duration
	// Duration is the length of the measured window. Default 5 s.
	Duration time.Duration

	// Began and Ended are called once each, in this order, at the edges of the
	// measured window, for example to look at the server's processor time. They
	// must not block. A run that is broken off early may call neither.
	Began, Ended func()
}

// answerWaitMax is how long an answer may take; the connection is given up then, and
// the request is an error.
const answerWaitMax = 20 * time.Second

// ensureDefaults replaces zeroes by the defaults.
func (o *Options) ensureDefaults() {
	o.Connections = cmp.Or(o.Connections, 64)
	o.Instances = cmp.Or(o.Instances, 10_000)
	o.WarmUp = max(0, cmp.Or(o.WarmUp, time.Second))
	o.Duration = cmp.Or(o.Duration, 5*time.Second)
	if o.Mix == (Mix{}) {
		o.Mix[Event] = 1
	}
	if o.Began == nil {
		o.Began = func() {}
	}
	if o.Ended == nil {
		o.Ended = func() {}
	}
}

// validate reports everything that is wrong at once.
func (o *Options) validate() error {
	var faults []error
	demand := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("load options: "+text))
		}
	}
	demand(o.Addr != "", "Addr is missing")
	demand(o.Connections > 0 && o.Instances > 0, "Connections and Instances must be above 0")
	demand(o.Preload >= 0 && o.Rate >= 0, "Preload and Rate must not be negative")
	demand(o.Duration > 0, "Duration must be above 0")
	demand(!strings.ContainsAny(o.Addr+o.Token, "\r\n "), "Addr and Token stand in headers and must not have blanks")
	return errors.Join(faults...)
}

// Mix is how many of each kind are sent for every sum of them.
type Mix [kinds]int

// ParseMix reads "create=1,event=8,read=1". What is not named is not sent.
func ParseMix(text string) (Mix, error) {
	var mix Mix
	sum := 0
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n > 1_000_000 {
			return Mix{}, fmt.Errorf(`mix %q: %q is not like "event=8"`, text, part)
		}
		known := false
		for k := range kinds {
			if k.String() == name {
				mix[k], known = n, true
			}
		}
		if !known {
			return Mix{}, fmt.Errorf("mix %q: %q is none of create, event, read", text, name)
		}
		sum += n
	}
	if sum == 0 {
		return Mix{}, fmt.Errorf("mix %q sends nothing", text)
	}
	return mix, nil
}

// String is the text that ParseMix reads.
func (m Mix) String() string {
	var parts []string
	for k := range kinds {
		if m[k] > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", k, m[k]))
		}
	}
	return strings.Join(parts, ",")
}

// pick chooses a kind by a random number.
func (m *Mix) pick(random uint64) Kind {
	sum := 0
	for _, n := range m {
		sum += n
	}
	at := int(random % uint64(sum))
	for k := Create; k < kinds; k++ {
		if at -= m[k]; at < 0 {
			return k
		}
	}
	return Event
}
