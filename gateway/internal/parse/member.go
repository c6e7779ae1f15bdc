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
// compared with their case; anyone who got only that wrong is told so.
func UnknownMember(prefix, key string, known ...string) error {
	for _, k := range known {
		if strings.EqualFold(k, key) {
			return Malformed("unknown member %s; it is written %q", Quote(prefix+key), prefix+k)
		}
	}
	return Malformed("unknown member %s; allowed are %s", Quote(prefix+key), strings.Join(known, ", "))
}

// Shape says which members an object of a request may have.
type Shape struct {
	of     string // stands before their names in messages, such as "event."
	names  []string
	fields []Field
}

// Field is a member of a Shape.
type Field struct {
	Name     string
	Kind     data.Kind // String or Object; Absent is any
	Required bool
	Check    func(v data.Value) error // nil: every value of the kind is good
}

// NewShape makes the shape of an object, whose members have names that begin with of in messages.
func NewShape(of string, fields ...Field) *Shape {
	s := &Shape{of: of, fields: fields}
	for _, f := range fields {
		s.names = append(s.names, f.Name)
	}
	return s
}

// Read puts the members of an object into values, which has a place for each field; they are slices of v. It refuses
// the first member that is wrong, in the order of the object, and then the first that is missing, in the order of the
// fields.
func (s *Shape) Read(v data.Value, values []data.Value) (err error) {
	for i, member := range v.Match(s.names) {
		if i < 0 {
			return s.unknown(v)
		}
		f := &s.fields[i]
		switch f.Kind {
		case data.String:
			if member.Kind() != data.String {
				_, err = StringMember(member, s.of+f.Name)
			}
		case data.Object:
			if member.Kind() != data.Object {
				_, err = ObjectMember(member, s.of+f.Name)
			}
		}
		if err == nil && f.Check != nil {
			err = f.Check(member)
		}
		if err != nil {
			return err
		}
		values[i] = member
	}
	for i := range s.fields {
		if s.fields[i].Required && values[i] == nil {
			return MissingMember(s.of + s.fields[i].Name)
		}
	}
	return nil
}

// unknown refuses the first member that is none of the shape's.
func (s *Shape) unknown(v data.Value) error {
	for key := range v.Members() {
		if !slices.Contains(s.names, key) {
			return UnknownMember(s.of, key, s.names...)
		}
	}
	return nil
}

var actionShape = NewShape("", Field{Name: "action", Kind: data.String})

// Action reads {"action": …}.
func Action[T ~string](body []byte, known ...T) (T, error) {
	value, err := Body(body)
	if err != nil {
		return "", err
	}
	var members [1]data.Value
	if err := actionShape.Read(value, members[:]); err != nil {
		return "", err
	}
	found := T(members[0].Text())
	if !slices.Contains(known, found) {
		return "", Malformed(`"action" must be %s`, ChoiceText(known))
	}
	return found, nil
}
