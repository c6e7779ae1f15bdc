package parse

import (
	"slices"
	"strings"

	"troupe/statemachine/data"
)

// Body checks the bytes of a JSON body. The result may be a slice of them.
func Body(body []byte) (data.Value, error) {
	value, err := data.Clean(body)
	if err != nil {
		return nil, Malformed("the body is %v", err)
	}
	if value.Kind() != data.Object {
		return nil, Malformed("the body must be a JSON object")
	}
	return value, nil
}

// StringMember returns a string member; field is its name in messages.
func StringMember(v data.Value, field string) (string, error) {
	if v.Kind() != data.String {
		return "", Malformed("%q must be a string, not %s", field, WithArticle(v.Kind()))
	}
	return v.Text(), nil
}

// ObjectMember returns a member that must be an object. NB: null is not taken for
// absent; who sends it wants something that we do not know.
func ObjectMember(v data.Value, field string) (data.Value, error) {
	if v.Kind() != data.Object {
		return nil, Malformed("%q must be an object, not %s", field, WithArticle(v.Kind()))
	}
	return v, nil
}

// WithArticle names a kind of JSON in a sentence.
func WithArticle(k data.Kind) string {
	switch k {
	case data.Null:
		return "null"
	case data.Array, data.Object:
		return "an " + k.String()
	default:
		return "a " + k.String()
	}
}

// MissingMember refuses an object without a member that it must have.
func MissingMember(field string) error {
	return Malformed("%q is missing", field)
}

// UnknownMember refuses a member that is none of the known ones. Keys are
// compared with their case; whoever got only that wrong is told so.
func UnknownMember(prefix, key string, known ...string) error {
	for _, k := range known {
		if strings.EqualFold(k, key) {
			return Malformed("unknown member %s; it is written %q", Quote(prefix+key), prefix+k)
		}
	}
	return Malformed("unknown member %s; allowed are %s", Quote(prefix+key), strings.Join(known, ", "))
}

// Action reads {"action": …}.
func Action[T ~string](body []byte, known ...T) (T, error) {
	value, err := Body(body)
	if err != nil {
		return "", err
	}
	found := ""
	for key, v := range value.Members() {
		if key != "action" {
			return "", UnknownMember("", key, "action")
		}
		if found, err = StringMember(v, key); err != nil {
			return "", err
		}
	}
	if !slices.Contains(known, T(found)) {
		return "", Malformed(`"action" must be %s`, ChoiceText(known))
	}
	return T(found), nil
}
