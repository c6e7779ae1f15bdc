package expr

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"troupe/statemachine/data"
)

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	source  string
	program cel.Program
	counted cel.Program // counts its cost while it runs; the same one when program does
	path    *path       // nil: not a plain path
	reads   []string    // variables
	reading reading     // the same, sorted
	nodes   []string    // literal operands of In

	publicMembers  []string // of svcPublic, that are named
	privateMembers []string // of svcPrivate, that are named
	privateWhole   bool     // svcPrivate is read otherwise as well
	named          []*path  // the parts of the data that it names

	patternWeight int
}

// Failure is the error of an evaluation, and says of which expression.
type Failure struct {
	Program *Program
	Cause   error
}

func (f *Failure) Error() string { return f.Cause.Error() }
func (f *Failure) Unwrap() error { return f.Cause }

// Source is the text of the expression.
func (p *Program) Source() string { return p.source }

// PatternWeight is what the regular expressions that the expression writes take together, in instructions.
func (p *Program) PatternWeight() int { return p.patternWeight }

// Bool evaluates a condition. Errors wrap ErrEval, also when the result is not a bool, and the result is then false. They wrap
// ErrLimit as well when the scope's Budget is exhausted.
func (p *Program) Bool(s *Scope) (result bool, err error) {
	if err := s.Budget.admit(); err != nil {
		return false, err
	}
	a := newActivation(s)
	defer func() {
		if r := recover(); r != nil {
			result, err = false, rescued(r)
		}
		if err != nil {
			err = &Failure{p, err}
		}
		a.release()
	}()
	v, err := p.eval(a)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, evalError("the result is not a bool but " + v.Type().TypeName())
	}
	return bool(b), nil
}

// Value evaluates an expression to JSON; the package comment says how. The result may be a slice of the scope's data. Errors wrap
// ErrEval, also when the result has no JSON form.
func (p *Program) Value(s *Scope) (result data.Value, err error) {
	if err := s.Budget.admit(); err != nil {
		return nil, err
	}
	if p.path != nil {
		if v, ok := p.path.find(s); ok {
			s.Budget.chargeFor(p.reading.size(s), nil)
			return v, nil
		}
	}
	a := newActivation(s)
	defer func() {
		if r := recover(); r != nil {
			result, err = nil, rescued(r)
		}
		if err != nil {
			err = &Failure{p, err}
		}
		a.release()
	}()
	v, err := p.eval(a)
	if err != nil {
		return nil, err
	}
	if result, err = encode(v); err == nil {
		s.Budget.Charge(uint64(len(result)) / writtenPerUnit)
	}
	return result, err
}

func (p *Program) eval(a *activation) (ref.Val, error) {
	program, size := p.program, p.reading.size(a.scope)
	if size > maxUncounted {
		program = p.counted
	}
	v, details, err := program.Eval(a)
	a.scope.Budget.chargeFor(size, details)
	if err == nil {
		return v, nil
	}
	var stopped interpreter.EvalCancelledError
	if errors.As(err, &stopped) {
		if stopped.Cause == interpreter.CostLimitExceeded {
			return nil, limitError("the evaluation costs too much on this data")
		}
		return nil, limitError(stopped.Message)
	}
	// NB: the text is made here and not later: it may print values that are read from the scope when they are printed.
	return nil, evalError(withoutValues(plainMessage(err.Error()), p.source))
}

// quoted is what a message quotes, whatever that has inside.
var quoted = regexp.MustCompile(`".*"`)

// withoutValues leaves out what a message says of data: a key or a quoted text that the expression itself does not have. Logs and
// incidents show errors to users who cannot read the instance.
func withoutValues(message, source string) string {
	const noKey = "no such key"
	if before, key, found := strings.Cut(message, noKey+": "); found && !strings.Contains(source, key) {
		return before + noKey
	}
	return quoted.ReplaceAllStringFunc(message, func(text string) string {
		if strings.Contains(source, strings.Trim(text, `"`)) {
			return text
		}
		return `"…"`
	})
}

// rescued is the error of a panic outside cel-go, which catches its own.
func rescued(r any) error {
	if stopped, ok := r.(interpreter.EvalCancelledError); ok {
		return limitError(stopped.Message)
	}
	return evalError(fmt.Sprintf("internal error: %v", r))
}

// Reads reports whether the expression mentions the variable, for example "svcPublic". In(…) counts as "instance". A variable of
// a loop that hides a variable of the scope counts, too.
func (p *Program) Reads(root string) bool {
	return slices.Contains(p.reads, root) || root == instanceRoot && slices.Contains(p.reads, nodesRoot)
}

// ReadsBeside reports whether the expression may read more of a root than these members of it.
func (p *Program) ReadsBeside(root string, members ...string) bool {
	if !p.Reads(root) {
		return false
	}
	for _, found := range regexp.MustCompile(`\b`+root+`\b(?:\s*\.\s*(\w+))?`).FindAllStringSubmatch(p.source, -1) {
		if !slices.Contains(members, found[1]) {
			return true
		}
	}
	return false
}

// ReadsPrivileges reports whether the expression may ask for the user's privileges.
func (p *Program) ReadsPrivileges() bool {
	return p.Reads(userRoot) && strings.Contains(p.source, "privileges")
}

// Nodes returns the names that the expression gives to In as literals, in the order of the text, so that a loader can look for
// them. The caller must not change the slice.
func (p *Program) Nodes() []string { return p.nodes }

// PublicMembers returns the members of svcPublic that the expression names, in the
// order of the text. The caller must not change the slice.
func (p *Program) PublicMembers() []string { return p.publicMembers }

// EventMembers returns the members of event.data that the expression names, in the order of the text.
func (p *Program) EventMembers() (members []string) {
	for _, at := range p.named {
		if at.root == eventRoot && len(at.steps) > 1 && at.steps[0].key == "data" && !at.steps[1].inList {
			members = append(members, at.steps[1].key)
		}
	}
	return members
}

// PlainPath returns the variable and the members that the expression names when it does
// nothing else, such as svcPublic and due; ok is false for all others.
func (p *Program) PlainPath() (root string, members []string, ok bool) {
	if p.path == nil {
		return "", nil, false
	}
	for _, s := range p.path.steps {
		if s.inList {
			return "", nil, false
		}
		members = append(members, s.key)
	}
	return p.path.root, members, true
}

// PrivateMembers returns the members of svcPrivate that the expression names, in the order of the text. all: it reads svcPrivate
// in another way as well, so that any member counts. The caller must not change the slice.
func (p *Program) PrivateMembers() (members []string, all bool) {
	return p.privateMembers, p.privateWhole
}
