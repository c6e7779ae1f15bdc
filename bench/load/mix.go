package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
)

// Kind is what a request asks for.
type Kind int

// The kinds of requests.
const (
	Create Kind = iota
	Event
	Read
	Query
	Job // up to Options.Batch jobs are taken and completed
	kinds
)

var kindNames = [kinds]string{"create", "event", "read", "query", "job"}

// String returns the word that a mix uses.
func (k Kind) String() string { return kindNames[k] }

// Mix is how many of each kind are sent for every sum of them.
type Mix [kinds]float64

// partMax bounds the parts of a mix.
const partMax = 1_000_000

// ParseMix reads "create=1,event=8,read=1,query=0.1". What is not named is not sent.
func ParseMix(text string) (Mix, error) {
	var mix Mix
	var named [kinds]bool
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n >= 0 && n <= partMax) { // NB: nor is NaN
			return Mix{}, fmt.Errorf(`mix %q: %q is not like "event=8"`, text, part)
		}
		known := false
		for k := range kinds {
			if k.String() == name {
				if named[k] {
					return Mix{}, fmt.Errorf("mix %q names %s twice", text, name)
				}
				mix[k], named[k], known = n, true, true
			}
		}
		if !known {
			return Mix{}, fmt.Errorf("mix %q: %q is none of %s", text, name, strings.Join(kindNames[:], ", "))
		}
	}
	if mix.sum() == 0 {
		return Mix{}, fmt.Errorf("mix %q sends nothing", text)
	}
	return mix, nil
}

// String is the text that ParseMix reads.
func (m Mix) String() string {
	var parts []string
	for k := range kinds {
		if m[k] > 0 {
			parts = append(parts, k.String()+"="+strconv.FormatFloat(m[k], 'g', -1, 64))
		}
	}
	return strings.Join(parts, ",")
}

func (m *Mix) sum() (sum float64) {
	for _, n := range m {
		sum += n
	}
	return sum
}

// pick chooses a kind by a random number from 0 to below 1.
func (m *Mix) pick(random float64) Kind {
	at := random * m.sum()
	for k := range kinds {
		if at -= m[k]; at < 0 {
			return k
		}
	}
	return Event
}

type fault struct {
	kind   Kind
	reason string // repeats: it has neither ports nor ids
	count  int64  // events of a batch that it is about; 0: the request
	shed   bool   // the server was too busy and did nothing
	broken bool   // the connection cannot be used again
	retry  int    // seconds until the server wants to be asked again
	status int    // of the answer; 0: there is none, or it is 200
	body   []byte // likewise; good until the next request
}

func (f *fault) Error() string {
	if f.kind < 0 {
		return f.reason
	}
	return f.kind.String() + ": " + f.reason
}

// PrepareError is a request before the window that was not answered as it should be, which ends a run.
type PrepareError struct {
	// Status is that of the answer; 0: there was none, or it was right and something else was not.
	Status int
	text   string
}

func (e *PrepareError) Error() string { return "prepare: " + e.text }

func prepareError(f *fault, asked string) error {
	e := &PrepareError{Status: f.status, text: asked + ": " + f.reason}
	var said struct{ Message string }
	if json.Unmarshal(f.body, &said) == nil && said.Message != "" {
		e.text += ": " + said.Message
	}
	return e
}

var errorCode = regexp.MustCompile(`^\{"error":"([A-Za-z]{1,40})"`)

// statusFault is an answer other than 200, or one after which the server closes
// the connection, which no healthy server does.
func statusFault(k Kind, h head, body []byte) *fault {
	f := &fault{kind: k, reason: fmt.Sprintf("status %d", h.status), shed: IsShed(h.status), broken: h.closes, retry: h.retry, status: h.status, body: body}
	if code := errorCode.FindSubmatch(body); code != nil {
		f.reason += " " + string(code[1])
	}
	if h.closes {
		f.reason += " and the connection closed"
	}
	return f
}

// IsShed reports whether a server that answers so was too busy and did nothing.
func IsShed(status int) bool { return status == 503 || status == 429 }

func transportFault(k Kind, cause error) *fault {
	return &fault{kind: k, reason: "no answer: " + causeText(cause), broken: true}
}

func connectFault(cause error) *fault {
	return &fault{kind: -1, reason: "attempt to connect: " + strings.TrimPrefix(causeText(cause), "connect: ")}
}

// causeText leaves out ports, which would make each error another one.
func causeText(cause error) string {
	var op *net.OpError
	if errors.As(cause, &op) {
		if op.Op == "dial" {
			return op.Err.Error()
		}
		return op.Op + ": " + strings.TrimPrefix(op.Err.Error(), op.Op+": ")
	}
	return strings.TrimSpace(cause.Error())
}
