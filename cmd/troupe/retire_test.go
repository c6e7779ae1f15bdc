package main

import (
	"strings"
	"testing"
)

// TestRetireWithoutAServer: the store of a home is opened when no server runs on it.
func TestRetireWithoutAServer(t *testing.T) {
	dir := smallHome(t)
	o := mustOpenService(t, dir)
	for _, text := range []string{door, strings.Replace(door, "version: 2", "version: 3", 1)} {
		if err := o.publish("", text, false); err != nil {
			t.Fatal(err)
		}
	}
	o.close()
	for _, c := range []struct{ args, out, err string }{
		{"door@4", "", "there is no such workflow or version"},
		{"door@x", "", "a version is a number from 1"},
		{"door@3 door@x", "", "a version is a number from 1"}, // and nothing was tried
		{"purchase-order", "", "comes from a file of the home"},
		{"door@3", "door@3\n", ""},
		{"door", "door@2\n", ""},
		{"door", "", "there is no such workflow or version"},
		{"", "", "is missing"},
	} {
		cmd, out := newRetire(), &strings.Builder{}
		cmd.SetArgs(append([]string{"--home", dir}, strings.Fields(c.args)...))
		cmd.SetOut(out)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || out.String() != c.out {
			t.Errorf("%q: got %q, %v, want %q, %q", c.args, out, err, c.out, c.err)
		}
	}
}
