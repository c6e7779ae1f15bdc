package process

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestExit(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		said string
	}{
		{nil, exitDone, ""},
		{errors.New("no disk"), exitFailed, "load: no disk\n"},
		{fmt.Errorf("%w: no such flag", ErrUsage), exitUsage, "load: wrong usage: no such flag\n"},
		{fmt.Errorf("%w: %w", ErrUsage, flag.ErrHelp), exitUsage, ""},
	} {
		var errs strings.Builder
		code := exit("load", c.err, &errs)
		assert.True(t, code == c.code && errs.String() == c.said, "%v: got %d and %q, want %d and %q", c.err, code, errs.String(), c.code, c.said)
	}
}
