package record

import "testing"

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
		if got := SpreadOf(c.figures); got != c.want {
			t.Errorf("%v: got %v, want %v", c.figures, got, c.want)
		}
	}
}
