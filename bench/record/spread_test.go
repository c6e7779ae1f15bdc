package record

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSpreadOf(t *testing.T) {
	for _, c := range []struct {
		figures []float64
		want    Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{3, 1}, Spread{1, 2, 3}},
		{[]float64{9, 1, 4}, Spread{1, 4, 9}},
	} {
		assert.Equal(t, c.want, SpreadOf(c.figures), c.figures)
	}
}
