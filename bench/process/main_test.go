package process

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
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
		if code := exit("load", c.err, &errs); code != c.code || errs.String() != c.said {
			t.Errorf("%v: got %d and %q, want %d and %q", c.err, code, errs.String(), c.code, c.said)
		}
	}
}
