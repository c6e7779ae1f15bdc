package main

import (
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"troupe/actors/identity"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// Values of settings, by unit. Each reads and shows what its target holds.

func text(to *string) pflag.Value {
	return plain(func(f *pflag.FlagSet, name string) { f.StringVar(to, name, *to, "") })
}

func yes(to *bool) pflag.Value {
	return plain(func(f *pflag.FlagSet, name string) { f.BoolVar(to, name, *to, "") })
}

func rate(to *float64) pflag.Value {
	return plain(func(f *pflag.FlagSet, name string) { f.Float64Var(to, name, *to, "") })
}

func count[T int | int64](to *T) pflag.Value {
	return plain(func(f *pflag.FlagSet, name string) {
		switch to := any(to).(type) {
		case *int:
			f.IntVar(to, name, *to, "")
		case *int64:
			f.Int64Var(to, name, *to, "")
		}
	})
}

func duration(to *time.Duration) pflag.Value { return (*durationValue)(to) }

// plain is a value of a type that pflag has.
func plain(declare func(f *pflag.FlagSet, name string)) pflag.Value {
	const name = "value"
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	declare(f, name)
	return f.Lookup(name).Value
}

// checked is a value that takes only what passes a check.
func checked(v pflag.Value, check func(string) error) pflag.Value { return &checkedValue{v, check} }

type checkedValue struct {
	pflag.Value
	check func(string) error
}

func (v *checkedValue) Set(s string) error {
	if err := v.check(s); err != nil {
		return err
	}
	return v.Value.Set(s)
}

// durationValue is a setting that is a time: Go's units, and d for days of 24 h.
type durationValue time.Duration

func (v *durationValue) Set(s string) error {
	d, err := parseDuration(s)
	if err == nil {
		*v = durationValue(d)
	}
	return err
}

// String writes whole days as days, and leaves out what is zero: 7d, 12h, 1m30s.
func (v *durationValue) String() string {
	d := time.Duration(*v)
	if days := d / (24 * time.Hour); days > 1 && d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(days)) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Type is what --help shows for the value.
func (v *durationValue) Type() string { return "time" }

// bytesValue is a setting that is a number of bytes, with or without a unit.
type bytesValue int64

var byteUnits = []struct {
	suffix string
	shift  int
}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}}

func (v *bytesValue) Set(s string) error {
	digits, shift := s, 0
	for _, unit := range byteUnits {
		if rest, found := strings.CutSuffix(s, unit.suffix); found {
			digits, shift = rest, unit.shift
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n > math.MaxInt64>>shift {
		return errors.New("must be a number of bytes such as 4096, 64KiB, 1MiB or 2GiB")
	}
	*v = bytesValue(n << shift)
	return nil
}

// String uses the largest unit that loses nothing.
func (v *bytesValue) String() string {
	for _, unit := range byteUnits {
		if n := int64(*v) >> unit.shift; n > 0 && n<<unit.shift == int64(*v) {
			return strconv.FormatInt(n, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(*v), 10)
}

// Type is what --help shows for the value.
func (v *bytesValue) Type() string { return "bytes" }

// prefixesValue is a setting that is a list of ranges of addresses, separated by
// commas. An address alone is a range of one.
type prefixesValue []netip.Prefix

func (v *prefixesValue) Set(s string) error {
	var list []netip.Prefix
	for element := range strings.SplitSeq(s, ",") {
		element = strings.TrimSpace(element)
		if element == "" && s == "" {
			break
		}
		address, err := netip.ParseAddr(element)
		prefix := netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())
		if err != nil {
			prefix, err = netip.ParsePrefix(element)
		}
		// NB: a range has no zone; netip takes everything behind a % for one.
		if err != nil || !prefix.IsValid() || prefix.Addr().Is4In6() || address.Zone() != "" {
			return errors.New("must be addresses or ranges such as 10.0.0.5,192.168.0.0/16, separated by commas")
		}
		list = append(list, prefix.Masked())
	}
	*v = list
	return nil
}

// String writes every range with its length.
func (v *prefixesValue) String() string {
	var texts []string
	for _, p := range *v {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ",")
}

// Type is what --help shows for the value.
func (v *prefixesValue) Type() string { return "addresses" }

// wordsValue is a setting that is a list of words, separated by blanks.
type wordsValue []string

func (v *wordsValue) Set(s string) error {
	*v = strings.Fields(s) // NB: without a word it is empty, not nil: nil would be the default
	return nil
}

func (v *wordsValue) String() string { return strings.Join(*v, " ") }

// Type is what --help shows for the value.
func (v *wordsValue) Type() string { return "string" }

// secretType is the type of settings that are not shown, and that can stand in a
// file of their own.
const secretType = "secret"

// secretValue is such a setting.
type secretValue string

func (v *secretValue) Set(s string) error {
	*v = secretValue(s)
	return nil
}

// String tells only whether there is one.
func (v *secretValue) String() string {
	if *v == "" {
		return ""
	}
	return "(not shown)"
}

// Type is what --help shows for the value.
func (v *secretValue) Type() string { return secretType }

// rolesValue is a setting that maps texts to roles: {staff: employee, heads:
// [manager, employee]}, in YAML or JSON.
type rolesValue map[string][]identity.RoleID

func (v *rolesValue) Set(s string) error {
	n, err := document.Parse("roles", []byte(s))
	if err != nil {
		return errRoles
	}
	return v.setNode(n)
}

var errRoles = errors.New("must map values to roles, such as {staff: employee, heads: [manager, employee]}")

// setNode takes the value as troupe.yaml has it.
func (v *rolesValue) setNode(n *document.Node) error {
	roles := rolesValue{}
	if n.Kind != document.Mapping && n.Kind != document.Null {
		return errRoles
	}
	for _, f := range n.Fields {
		items := []*document.Node{f.Value}
		if f.Value.Kind == document.Sequence {
			items = f.Value.Items
		}
		for _, item := range items {
			if item.Kind != document.String || !statemachine.IsIdentifier(item.Text) {
				return errRoles
			}
			roles[f.Key.Text] = append(roles[f.Key.Text], identity.RoleID(item.Text))
		}
	}
	*v = roles
	return nil
}

// String writes JSON in one line, sorted by value.
func (v *rolesValue) String() string {
	if len(*v) == 0 {
		return ""
	}
	text, err := json.Marshal(map[string][]identity.RoleID(*v))
	if err != nil {
		return err.Error() // strings always can be written
	}
	return string(text)
}

// Type is what --help shows for the value.
func (v *rolesValue) Type() string { return "roles" }

// parseDuration reads a time such as 90s, 1h30m, 30d or 1d12h.
func parseDuration(s string) (time.Duration, error) {
	wrong := errors.New("must be a time such as 90s, 1h30m, 12h or 30d")
	var total time.Duration
	if days, rest, found := strings.Cut(s, "d"); found {
		n, err := strconv.ParseUint(days, 10, 16) // so many days fit into a Duration
		if err != nil {
			return 0, wrong
		}
		if total = time.Duration(n) * 24 * time.Hour; rest == "" {
			return total, nil
		}
		s = rest
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || total+d < total {
		return 0, wrong
	}
	return total + d, nil
}
