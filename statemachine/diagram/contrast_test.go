package diagram

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// looks are the rules of the style for light pages, and for dark ones, which add to them.
func looks() (light, dark map[string]string) {
	light, dark = map[string]string{}, map[string]string{}
	first, second, _ := strings.Cut(style, "@media")
	for _, part := range []struct {
		text  string
		rules []map[string]string
	}{{first, []map[string]string{light, dark}}, {second, []map[string]string{dark}}} {
		for _, rule := range regexp.MustCompile(`(?m)^(\.tp .*)\{(.*)\}$`).FindAllStringSubmatch(part.text, -1) {
			for _, selector := range strings.Split(rule[1], ",") {
				for _, property := range strings.Split(rule[2], ";") {
					name, value, _ := strings.Cut(property, ":")
					for _, rules := range part.rules {
						rules[strings.TrimPrefix(selector, ".tp ")+" "+name] = value
					}
				}
			}
		}
	}
	return light, dark
}

type colour [3]float64

func colourOf(t *testing.T, text string) (c colour) {
	t.Helper()
	hex := strings.TrimPrefix(text, "#")
	if len(hex) == 3 {
		hex = strings.Repeat(hex[:1], 2) + strings.Repeat(hex[1:2], 2) + strings.Repeat(hex[2:], 2)
	}
	for i := range c {
		v, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		require.NoError(t, err, "%q is no colour", text)
		c[i] = float64(v) / 255
	}
	return c
}

func (c colour) over(below colour) (mixed colour) {
	for i := range c {
		mixed[i] = (c[i] + below[i]) / 2
	}
	return mixed
}

func contrast(a, b colour) float64 {
	luminance := func(c colour) (sum float64) {
		for i, weight := range []float64{.2126, .7152, .0722} {
			v := c[i] / 12.92
			if c[i] > .04045 {
				v = math.Pow((c[i]+.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}

// TestWhatWasNotReachedCanBeRead: in light and in dark the text of quiet nodes and labels has a
// contrast of 4.5 on all that can be below it, and nothing makes a text fainter.
func TestWhatWasNotReachedCanBeRead(t *testing.T) {
	light, dark := looks()
	for name, rules := range map[string]map[string]string{"light": light, "dark": dark} {
		for rule := range rules {
			selector, faint := strings.CutSuffix(rule, " opacity")
			assert.False(t, faint && !regexp.MustCompile(`(\.box|\.ring|\.divider|\.line|\.head|\.dot)$`).MatchString(selector), "%v %v", name, selector)
		}
		text := colourOf(t, rules[".quiet>text fill"])
		assert.Equal(t, rules[".quiet>text fill"], rules[".quiet>g>text fill"], "%s: the lines of a label", name)
		for _, ground := range []string{".machine>.box fill", ".even>.box fill", ".odd>.box fill"} {
			below := colourOf(t, rules[ground])
			for _, leaf := range []string{"", ".leaf>.box fill", ".leaf.waiting>.box fill", ".leaf.good>.box fill", ".leaf.bad>.box fill"} {
				under := below
				if leaf != "" {
					under = colourOf(t, rules[leaf]).over(below)
				}
				assert.GreaterOrEqual(t, contrast(text, under), 4.5, "%s: a text on %s on %s has a contrast", name, leaf, ground)
			}
		}
	}
}

// TestTheLegendHasTheColoursOfThePicture: what says "where it is now" looks like the nodes that it stands at.
func TestTheLegendHasTheColoursOfThePicture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "w.yaml")
	text := `
id: w
stateMachines:
  one: {initial: a, states: {a: {tone: waiting, on: {go: b}}, b: {type: final}}}
  two: {initial: c, states: {c: {tone: good, on: {go: e}}, e: {type: final}}}
  three: {initial: f, states: {f: {tone: good, on: {go: g}}, g: {type: final}}}
`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	d := parseFile(t, file)
	_, legend, _ := strings.Cut(string((&Picture{Chart: d.Chart(), Instance: play(t, d, nil)}).SVG()), `<g class="legend">`)
	legend, _, _ = strings.Cut(legend, "where it is now")
	var classes []string
	for _, found := range regexp.MustCompile(`<g class="([^"]*)"`).FindAllStringSubmatch(legend, -1) {
		classes = append(classes, found[1])
	}
	assert.Equal(t, "leaf waiting visited now, leaf good visited now", strings.Join(classes, ", "), "the legend")
}
