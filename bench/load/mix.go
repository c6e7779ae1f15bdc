package load

import (
	"fmt"
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
	kinds
)

var kindNames = [kinds]string{"create", "event", "read", "query"}

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
