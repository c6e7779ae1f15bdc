package cli

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Values of settings, by unit. Each reads and shows what its target holds.

// Text is any text.
func Text(to *string) pflag.Value {
	return ValueOf(to, "string", func(s string) (string, error) { return s, nil }, func(s string) string { return s })
}

// Boolean is true or false.
func Boolean(to *bool) pflag.Value {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.BoolVar(to, "value", *to, "")
	return f.Lookup("value").Value
}

// Rate is a number a second.
func Rate(to *float64) pflag.Value {
	return ValueOf(
		to, "float64",
		func(s string) (float64, error) {
			r, err := strconv.ParseFloat(s, 64)
			if err != nil || math.IsNaN(r) || math.IsInf(r, 0) || r < 0 {
				return 0, errors.New("must be a number of at least 0, such as 0.5 or 20")
			}
			return r, nil
		},
		func(r float64) string { return strconv.FormatFloat(r, 'g', -1, 64) },
	)
}

// Count is a whole number.
func Count[T int | int64](to *T) pflag.Value {
	return ValueOf(
		to, "int",
		func(s string) (T, error) {
			n, err := strconv.ParseInt(s, 0, 64)
			if err != nil || n < 0 || int64(T(n)) != n {
				return 0, errors.New("must be a whole number of at least 0")
			}
			return T(n), nil
		},
		func(n T) string { return strconv.FormatInt(int64(n), 10) },
	)
}

// Sequence is the sequence number of an instance, also as the ETag that has it.
func Sequence(to *uint64) pflag.Value {
	return ValueOf(
		to, "uint64",
		func(s string) (uint64, error) {
			if len(s) > 2 && s[0] == '"' && s[len(s)-1] == '"' {
				s = s[1 : len(s)-1]
			}
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil || n == 0 {
				return 0, errors.New("must be a sequence number of at least 1")
			}
			return n, nil
		},
		func(n uint64) string { return strconv.FormatUint(n, 10) },
	)
}

// Checked is a value that takes only what passes a check.
func Checked(v pflag.Value, check func(string) error) pflag.Value { return &checkedValue{v, check} }

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

// Value is a setting of a type that pflag does not have.
type Value[T any] struct {
	To    *T
	kind  string // what --help shows for it
	parse func(string) (T, error)
	show  func(T) string
}

// Set implements pflag.Value.
func (v *Value[T]) Set(s string) error {
	parsed, err := v.parse(s)
	if err == nil {
		*v.To = parsed
	}
	return err
}

func (v *Value[T]) String() string { return v.show(*v.To) }

// ValueOf makes a value of a type that pflag does not have. kind is what --help shows for it.
func ValueOf[T any](to *T, kind string, parse func(string) (T, error), show func(T) string) pflag.Value {
	return &Value[T]{to, kind, parse, show}
}

// Type is what --help shows for the value.
func (v *Value[T]) Type() string { return v.kind }

// Duration is a time: Go's units, and d for days of 24 h.
func Duration(to *time.Duration) pflag.Value { return ValueOf(to, "time", ParseDuration, showDuration) }

// ParseDuration reads a time such as 90s, 1h30m, 30d or 1d12h.
func ParseDuration(s string) (time.Duration, error) {
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

func showDuration(d time.Duration) string {
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

// Size is a number of bytes, with or without a unit.
func Size(to *int64) pflag.Value { return ValueOf(to, "bytes", parseSize, showSize) }

var byteUnits = []struct {
	suffix string
	shift  int
}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}}

func parseSize(s string) (int64, error) {
	digits, shift := s, 0
	for _, unit := range byteUnits {
		if rest, found := strings.CutSuffix(s, unit.suffix); found {
			digits, shift = rest, unit.shift
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, errors.New("must be a number of bytes such as 4096, 64KiB, 1MiB or 2GiB")
	}
	return int64(n << shift), nil
}

func showSize(bytes int64) string {
	for _, unit := range byteUnits {
		if n := bytes >> unit.shift; n > 0 && n<<unit.shift == bytes {
			return strconv.FormatInt(n, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(bytes, 10)
}
