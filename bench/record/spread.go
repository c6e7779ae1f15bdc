package record

import (
	"fmt"
	"slices"
)

// Spread is what the rounds of a measurement gave: the least, the middle and the most.
type Spread struct {
	Least  float64 `json:"least"`
	Middle float64 `json:"median"`
	Most   float64 `json:"most"`
}

// SpreadOf returns the spread of figures. Of an even number the middle is the mean of two.
func SpreadOf(figures []float64) Spread {
	figures = slices.Sorted(slices.Values(figures))
	n := len(figures)
	if n == 0 {
		return Spread{}
	}
	return Spread{figures[0], (figures[(n-1)/2] + figures[n/2]) / 2, figures[n-1]}
}

// Text writes all three, each in the format.
func (s Spread) Text(format string) string {
	return fmt.Sprintf(format+"–"+format+"–"+format, s.Least, s.Middle, s.Most)
}
