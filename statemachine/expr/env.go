package expr

import (
	"fmt"
	"regexp"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"troupe/statemachine/data"
	"troupe/statemachine/expr/internal/functions"
)

const (
	defaultCostMax    = 1_000_000
	defaultTrackAbove = 1_000

	maxSourceBytes = 16 << 10
	// maxNodes is how many nodes it may have, after macros.
	maxNodes   = 10_000
	maxNesting = 100
)

// Options configures an Env. The zero Options is what a server wants.
type Options struct {
	// CostMax is what one evaluation may cost, in cel-go's units; one is about 50 ns. Zero means 1,000,000. An expression whose
	// worst case is above is refused when it is compiled, one that gets there on its data is stopped.
	CostMax uint64
	// TrackAbove is the worst case above which the cost is counted while the
	// expression runs, which makes it half as fast. Zero means 1,000.
	TrackAbove uint64
	// AnyWorstCase takes an expression whose worst case is above CostMax as well. It
	// is still stopped when it gets there on its data.
	AnyWorstCase bool
}

func (o *Options) ensureDefaults() {
	if o.CostMax == 0 {
		o.CostMax = defaultCostMax
	}
	if o.TrackAbove == 0 {
		o.TrackAbove = defaultTrackAbove
	}
}

// Env compiles expressions. It is safe for concurrent use.
type Env struct {
	options Options
	cel     *cel.Env
	names   []string // all variables that an expression can name
	// constants are the values of "const.name"; nil: there are none.
	constants map[string]data.Value
}

// New returns an Env with the variables and functions of the profile. It takes some milliseconds, so it is made once and shared.
// An error is a fault of this package.
func New(o Options) (*Env, error) {
	o.ensureDefaults()
	p, err := newProvider()
	if err != nil {
		return nil, fmt.Errorf("expression types: %w", err)
	}
	library, err := functions.Library()
	if err != nil {
		return nil, err
	}
	e, err := cel.NewCustomEnv(append(library,
		cel.CustomTypeProvider(p),
		cel.ParserRecursionLimit(maxNesting),
		cel.ParserErrorRecoveryLimit(1),
		cel.ExpressionNodeLimit(maxNodes),
		cel.Variable(publicRoot, cel.DynType),
		cel.Variable(privateRoot, cel.DynType),
		cel.Variable(eventRoot, eventType.typ),
		cel.Variable(userRoot, userType.typ),
		cel.Variable(instanceRoot, instanceType.typ),
		cel.Variable(parentRoot, parentType.typ),
		cel.Variable(nowRoot, cel.TimestampType),
		cel.Variable(nodesRoot, cel.MapType(cel.StringType, cel.BoolType)),
		cel.Macros(cel.GlobalMacro("In", 1, expandIn)))...)
	if err != nil {
		return nil, fmt.Errorf("expression environment: %w", err)
	}
	names := []string{eventRoot, publicRoot, privateRoot, userRoot, instanceRoot, parentRoot, nowRoot}
	return &Env{options: o, cel: e, names: names}, nil
}

// AnyWorstCase returns e with Options.AnyWorstCase as told. It costs nothing.
func (e *Env) AnyWorstCase(taken bool) *Env {
	other := *e
	other.options.AnyWorstCase = taken
	return &other
}

// expandIn makes In(x) a read of the map of nodes. A function would not know the Scope; a macro and a variable leave the Env
// independent of it. That x is a text is found by the checker, as the map's keys are; only the message of a literal is our own.
func expandIn(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	if name := args[0]; name.Kind() == ast.LiteralKind && name.AsLiteral().Type() != types.StringType {
		return nil, f.NewError(name.ID(), "In takes the name of a node")
	}
	return f.NewCall(operators.Index, f.NewIdent(nodesRoot), args[0]), nil
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

var reserved = []string{
	"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in",
	"let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while",
}

// IsName reports whether a variable or a constant can have the name: it is an identifier and no word of the language.
func IsName(s string) bool { return variable.MatchString(s) && !slices.Contains(reserved, s) }

// With returns an Env that knows e's variables and names, whose values are looked up in Scope.Locals. e does not change. Errors
// wrap ErrName: a name is not an identifier, is a word of the language, or is taken. It is about as expensive as a compilation.
func (e *Env) With(names ...string) (*Env, error) {
	known := slices.Clone(e.names)
	opts := make([]cel.EnvOption, 0, len(names))
	for _, name := range names {
		switch {
		case !IsName(name):
			return nil, fmt.Errorf("%w: %s", ErrName, oneLine(name))
		case name == parentRoot && !slices.Contains(known[len(e.names):], name): // NB: definitions from before there were parents
		case slices.Contains(known, name):
			return nil, fmt.Errorf("%w: %s is taken", ErrName, name)
		}
		known = append(known, name)
		opts = append(opts, cel.Variable(name, cel.DynType))
	}
	return e.extended(known, e.constants, opts)
}

// extended returns an Env with other names and constants, which opts declare.
func (e *Env) extended(names []string, constants map[string]data.Value, opts []cel.EnvOption) (*Env, error) {
	c, err := e.cel.Extend(opts...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrName, err)
	}
	return &Env{options: e.options, cel: c, names: names, constants: constants}, nil
}
