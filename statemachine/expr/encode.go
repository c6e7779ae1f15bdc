package expr

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"troupe/statemachine/data"
	"troupe/statemachine/expr/internal/values"
)

// encode returns the JSON form of a result. Errors wrap ErrEval: the result has no JSON form, or the form would be too large or
// nested deeper than a data.Value may be.
func encode(v ref.Val) (data.Value, error) {
	if weight, _ := values.Weigh(v); weight > values.WeightMax {
		return nil, limitError(values.TooLarge)
	}
	plain, err := plainValue(v)
	if err != nil {
		return nil, err
	}
	out, err := data.From(plain)
	if err != nil {
		return nil, evalError(err.Error())
	}
	return out, nil
}

// plainValue returns v as data.From takes it. Parts of the input stay bytes, and so keep their key order and their numbers.
//
// NB: the interfaces of lists and maps come last; values.Object, values.List and view have them as well.
func plainValue(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return uint64(v), nil
	case types.Double:
		return plainDouble(float64(v))
	case types.String:
		return string(v), nil
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return seconds(v.Duration), nil
	case *types.Optional:
		if !v.HasValue() {
			return nil, nil
		}
		return plainValue(v.GetValue())
	case *values.Object:
		return v.Raw, nil
	case *values.List:
		return v.Raw, nil
	case *view:
		return plainView(v)
	case traits.Lister:
		return plainList(v)
	case traits.Mapper:
		return plainMap(v)
	}
	return nil, evalError("no JSON form: " + v.Type().TypeName())
}

// plainDouble refuses doubles that JSON cannot write. -0 becomes 0, which is equal.
func plainDouble(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, evalError(fmt.Sprintf("no JSON form: %v", f))
	}
	if f == 0 {
		return 0, nil
	}
	return f, nil
}

// seconds writes a duration as protocol buffers do: "90s", "-0.5s". CEL reads it back with duration(…).
func seconds(d time.Duration) string {
	whole, fraction := d/time.Second, d%time.Second
	sign := ""
	if d < 0 {
		sign, whole, fraction = "-", -whole, -fraction
	}
	s := sign + strconv.FormatInt(int64(whole), 10)
	if fraction != 0 {
		s += strings.TrimRight(fmt.Sprintf(".%09d", int64(fraction)), "0")
	}
	return s + "s"
}

func plainList(l traits.Lister) (any, error) {
	out := make([]any, 0, int(l.Size().(types.Int)))
	for it := l.Iterator(); it.HasNext() == types.True; {
		x, err := plainValue(it.Next())
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// plainMap converts a map that the expression made. data.From sorts the keys.
// Keys must be strings: if 1 were written as "1", two keys could become one.
func plainMap(m traits.Mapper) (any, error) {
	out := make(map[string]any, int(m.Size().(types.Int)))
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, evalError("no JSON form: a map with a key of type " + key.Type().TypeName())
		}
		x, err := plainValue(m.Get(key))
		if err != nil {
			return nil, err
		}
		out[string(name)] = x
	}
	return out, nil
}

// plainView writes a variable taken whole, with the fields that are set.
func plainView(v *view) (any, error) {
	out := make(map[string]any, len(v.root.fields))
	for i := range v.root.fields {
		f := &v.root.fields[i]
		if !f.isSet(v.activation) {
			continue
		}
		x, err := plainValue(f.get(v.activation))
		if err != nil {
			return nil, err
		}
		out[f.name] = x
	}
	return out, nil
}
