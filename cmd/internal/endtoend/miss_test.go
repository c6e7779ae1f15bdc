package endtoend

import (
	"cmp"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var misses = flag.Int("misses", 0, "how often TestMissesTakeAsLong asks for each file; 0 skips it")

// TestMissesTakeAsLong holds promise P19 of reliability in time: how long it takes
// to be told that there is no file does not tell a file that may not be read from
// one that is not there. It is a measurement (make misses), for a quiet machine,
// and of a hundred comparisons of equal things one fails.
func TestMissesTakeAsLong(t *testing.T) {
	if *misses == 0 {
		t.Skip("without -misses")
	}
	h := newHome(t, map[string]string{
		"identity.yaml": filePeople,
		"rights.yaml": "- {path: /Sales, readers: ['user:ann']}\n- {path: /Sales/hidden.rml, readers: []}\n" +
			"- {path: /Sales/deep, readers: []}\n",
		"repository/Sales/hidden.rml":         "<r/>",
		"repository/Sales/deep/er/hidden.rml": "<r/>",
	})
	p := start(t, h)
	ann := user{p, []string{"Authentication: svc.token " + h.token("ann")}}
	files := []string{"/Sales/hidden.rml", "/Sales/deep/er/hidden.rml", "/Sales/nobody.rml", "/Sales/nope/er/nobody.rml"}
	took := make([][]time.Duration, len(files))
	for range *misses {
		for _, i := range rand.Perm(len(files)) {
			begun := time.Now()
			got := ann.get(t, "/rml-engine/api/v1/parameters?rml="+files[i])
			took[i] = append(took[i], time.Since(begun))
			if got.status != 404 {
				t.Fatalf("%s: got %d", files[i], got.status)
			}
		}
	}
	for i := range files {
		slices.Sort(took[i])
		t.Logf("%s: 1%% %v, median %v, 99%% %v", files[i], took[i][*misses/100], took[i][*misses/2], took[i][*misses*99/100])
		for j := range i {
			p := mannWhitney(took[i], took[j])
			t.Logf("%s and %s: p = %.3f", files[i], files[j], p)
			if p < 0.01 {
				t.Errorf("%s takes another time than %s: p = %.4f", files[i], files[j], p)
			}
		}
	}
}

// mannWhitney returns the probability that two samples of the same distribution
// differ at least as much as these (H. B. Mann and D. R. Whitney, 1947; the normal
// approximation, two-sided).
func mannWhitney(a, b []time.Duration) float64 {
	type sample struct {
		took time.Duration
		ofA  bool
	}
	var all []sample
	for _, took := range a {
		all = append(all, sample{took, true})
	}
	for _, took := range b {
		all = append(all, sample{took, false})
	}
	slices.SortFunc(all, func(x, y sample) int { return cmp.Compare(x.took, y.took) })
	ranks := 0.0
	for i, s := range all {
		if s.ofA {
			ranks += float64(i + 1)
		}
	}
	n, m := float64(len(a)), float64(len(b))
	z := (ranks - n*(n+1)/2 - n*m/2) / math.Sqrt(n*m*(n+m+1)/12)
	return math.Erfc(math.Abs(z) / math.Sqrt2)
}
