package param

// Limits bound the work that one file can cause. The zero value of a field means its default; the defaults together
// keep every file below 2 s and 64 MB on one core.
type Limits struct {
	// FileBytes is the size of a file as it is stored. Default: 20 MiB.
	FileBytes int64
	// Entries is how many entries the zip file of a document may have. Default: 2000.
	Entries int
	// PartBytes is the size of one part of a document, inflated. Default: 64 MiB.
	PartBytes int64
	// DocumentBytes is the size of all parts that are read, together, inflated. Default: 128 MiB.
	DocumentBytes int64
	// Ratio is the largest allowed size of an inflated part, as a multiple of its compressed size. Default: 100.
	Ratio int64
	// Depth is how deep elements may be nested. Default: 256.
	Depth int
	// TagBytes is the length of one start tag with its attributes, in UTF-8. Default: 4 MiB.
	TagBytes int
	// Attributes is how many one element may have. Default: 1000.
	Attributes int
	// Nodes is how many elements and attributes a file may have together. Default: 4,000,000.
	Nodes int
	// Parameters is how many different names may be declared. Default: 10,000.
	Parameters int
	// Declarations is how many declarations there may be, repetitions included. Default: 1,000,000.
	Declarations int
	// DeclarationBytes is the length of one declaration, from its ${ to its }, in UTF-8; at most 1 GiB. Default: 64
	// KiB.
	DeclarationBytes int
	// Nesting is how deep declarations may be nested. Default: 32.
	Nesting int
	// NameBytes is the length of the names of all declarations together, repetitions included. Default: 32 MiB.
	NameBytes int64
	// ResultBytes is the length of what is returned: names, types and defaults. Default: 8 MiB.
	ResultBytes int64
}

// WithDefaults returns the limits with every zero replaced by its default.
func (l Limits) WithDefaults() Limits {
	set(&l.FileBytes, 20<<20)
	set(&l.Entries, 2000)
	set(&l.PartBytes, 64<<20)
	set(&l.DocumentBytes, 128<<20)
	set(&l.Ratio, 100)
	set(&l.Depth, 256)
	set(&l.TagBytes, 4<<20)
	set(&l.Attributes, 1000)
	set(&l.Nodes, 4_000_000)
	set(&l.Parameters, 10_000)
	set(&l.Declarations, 1_000_000)
	set(&l.DeclarationBytes, 64<<10)
	set(&l.Nesting, 32)
	set(&l.NameBytes, 32<<20)
	set(&l.ResultBytes, 8<<20)
	return l
}

func set[N int | int64](field *N, value N) {
	if *field == 0 {
		*field = value
	}
}
