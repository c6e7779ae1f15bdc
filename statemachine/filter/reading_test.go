package filter

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestARegularExpressionThatTakesLongToReadIsRefused: each of these characters takes 0.6 ms and no step.
func TestARegularExpressionThatTakesLongToReadIsRefused(t *testing.T) {
	for filter, refused := range map[string]bool{
		`{"svcPublic.a":{"$regex":"` + strings.Repeat("[B-𞥂]", 100) + `","$options":"i"}}`: true,
		`{"svcPublic.a":{"$regex":"` + strings.Repeat("[B-𞥂]", 100) + `"}}`:                false,
		`{"svcPublic.a":{"$regex":"^[a-zà-ÿ]+$","$options":"i"}}`:                          false,
	} {
		_, err := Parse([]byte(filter), Options{})
		assert.True(t, errors.Is(err, ErrTooLarge) == refused && (err == nil || refused), "%.60s: got %v", filter, err)
	}
}
