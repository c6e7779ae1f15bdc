package pattern_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/internal/pattern"
)

// TestWhatTakesLongIsRefused: each takes seconds to read, and would count as one instruction or as few.
func TestWhatTakesLongIsRefused(t *testing.T) {
	for _, text := range []string{
		`(?i)[` + strings.Repeat(`B-𞥂`, 680) + `]`, `(?i)` + strings.Repeat(`[B-𞥂]`, 500), `(?si:[` + strings.Repeat(`B-\x{1E942}`, 360) + `])`,
		`(?P<i>a)(?i)[` + strings.Repeat(`\x{42}-𞥂`, 300) + `]`, `[` + strings.Repeat(`\pL`, 1360) + `]`, strings.Repeat(`(a?){900}`, 400), strings.Repeat(`a`, 5000), `(a|b){0,600}`, `(`,
	} {
		_, err := pattern.Of(text)
		assert.Error(t, err, "%.30s is taken", text)
	}
}

func TestUsualPatternsAreTaken(t *testing.T) {
	for text, most := range map[string]int{
		`(?i)^[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}$`: 40, `(?i)^[a-zà-ÿ '-]{1,100}$`: 210, `^\p{L}{1,100}$`: 620, `(?i)[一-龥]`: 100,
		`^[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}$`: 70, `(?i)^\d+\-\x41-z$`: 300, `(?i)-`: 5, `(?i)a-\`: 0,
	} {
		cost, err := pattern.Of(text)
		assert.True(t, (err != nil) == (most == 0) && cost.Weight <= most, "%s: got %+v, %v, want a weight of at most %d", text, cost, err, most)
	}
}

// TestAClassOfManyRangesWeighsMore: each instruction has a copy of them.
func TestAClassOfManyRangesWeighsMore(t *testing.T) {
	cost, err := pattern.Of(`^\pL{990}$`)
	assert.True(t, err == nil && cost.Weight >= 4*990 && cost.Size <= 1000, "got %+v, %v", cost, err)
}
