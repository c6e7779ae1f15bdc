package document

import (
	"fmt"
	"strings"
)

// maxWord is the longest word that is compared; longer ones are not typing errors.
const maxWord = 64

// maxAmong is with how many words one is compared at most: a large file has tens of thousands, and as many slips.
const maxAmong = 1_000

// Closest returns the word of among that word was probably meant to be, and "" when none is near: at most 2 or a third
// of its characters are wrong, missing, too many or swapped with a neighbour, and no more than half. Case does not
// count. Of words equally near it is the first. Of a long list only the first words are looked at.
func Closest(word string, among []string) string {
	if len(word) > maxWord {
		return ""
	}
	w := []rune(strings.ToLower(word))
	best, bestDistance := "", maxWord
	for _, candidate := range among[:min(len(among), maxAmong)] {
		if len(candidate) > maxWord {
			continue
		}
		c := []rune(strings.ToLower(candidate))
		d := distance(w, c)
		longer := max(len(w), len(c))
		if d < bestDistance && d <= max(2, longer/3) && 2*d <= longer {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// DidYouMean asks for the word of among that is Closest, for a Fault's Suggestion; "" when none is near.
func DidYouMean(word string, among []string) string {
	near := Closest(word, among)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}

// distance is the Damerau-Levenshtein distance in its usual restricted form: no part is edited twice.
func distance(a, b []rune) int {
	// Rows of the table: for the prefix of a before the last, the last, and the present character.
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			// One less of a, one more of b, or one for the other.
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		// NB: the oldest row is used again for the next.
		before, last, row = last, row, before
	}
	return last[len(b)]
}
