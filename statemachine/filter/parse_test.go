package filter

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
)

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      error
		says      string
	}{
		{"null", `null`, ErrSyntax, "must be an object, not null"},
		{"an array", `[]`, ErrSyntax, "not array"},
		{"a text", `"x"`, ErrSyntax, "not string"},
		{"a number", `1`, ErrSyntax, "not number"},
		{"true", `true`, ErrSyntax, "not bool"},
		{"trailing data", `{}{}`, ErrSyntax, "after the value"},
		{"invalid UTF-8", "{\"_id\":\"\xff\"}", ErrSyntax, "invalid UTF-8"},
		{"a lone surrogate", `{"_id":"\ud800"}`, ErrSyntax, "surrogate"},
		{"an exponent of 18 digits", `{"svcPublic.a":{"$gt":1e100000000000000000}}`, ErrSyntax, "exponent"},
		{"duplicate operators", `{"svcPublic.a":{"$gt":1,"$gt":2}}`, ErrSyntax, "duplicate key"},
		{"an empty path", `{"":1}`, ErrRoot, `""`},
		{"a leading dot", `{".svcPublic":1}`, ErrRoot, ""},
		{"a trailing dot", `{"svcPublic.":1}`, ErrSyntax, "empty segment"},
		{"two dots", `{"svcPublic..a":1}`, ErrSyntax, "empty segment"},
		{"an unknown root", `{"secret":1}`, ErrRoot, `"secret"`},
		{"a root in another case", `{"svcpublic.a":1}`, ErrRoot, ""},
		{"a root that is only a prefix", `{"svcPublicX":1}`, ErrRoot, ""},
		{"a prototype", `{"__proto__.x":1}`, ErrRoot, ""},
		{"private data", `{"svcPrivate.x":1}`, ErrRoot, `"svcPrivate"`},
		{"private data as a whole", `{"svcPrivate":{}}`, ErrRoot, ""},
		{"an operator that runs code", `{"$where":"1"}`, ErrUnsupported, `"$where"`},
		{"$expr", `{"$expr":{}}`, ErrUnsupported, `"$expr"`},
		{"$jsonSchema", `{"$jsonSchema":{}}`, ErrUnsupported, `"$jsonSchema"`},
		{"$near", `{"svcPublic.a":{"$near":[1,2]}}`, ErrUnsupported, `"$near"`},
		{"$where on a path", `{"svcPublic.a":{"$where":"1"}}`, ErrUnsupported, `"$where"`},
		{"$comment on a path", `{"svcPublic.a":{"$comment":"x"}}`, ErrUnsupported, `"$comment"`},
		{"an operator nobody knows", `{"svcPublic.a":{"$":1}}`, ErrUnsupported, `"$"`},
		{"an operator nobody knows in $and", `{"$and":[{"$x":2}]}`, ErrUnsupported, `"$x"`},
		{"an operator nobody knows in $not", `{"svcPublic.a":{"$not":{"$x":2}}}`, ErrUnsupported, `"$x"`},
		{"an operator nobody knows in $elemMatch", `{"svcPublic.a":{"$elemMatch":{"$x":2}}}`, ErrUnsupported, `"$x"`},
		{"an operator nobody knows in $elemMatch's documents", `{"svcPublic.a":{"$elemMatch":{"b":1,"$gt":2}}}`, ErrUnsupported, `"$gt"`},
		{"an operator with an escape", `{"svcPublic.a":{"\u0024where":1}}`, ErrUnsupported, `"$where"`},
		{"an operator in another case", `{"svcPublic.a":{"$GT":1}}`, ErrUnsupported, `"$GT"`},
		{"an operator of paths at the top", `{"$gt":1}`, ErrUnsupported, `"$gt"`},
		{"an operator of the top at a path", `{"svcPublic.a":{"$or":[]}}`, ErrUnsupported, `"$or"`},
		{"a combination in $elemMatch's values", `{"svcPublic.a":{"$elemMatch":{"$gt":1,"$or":[{}]}}}`, ErrUnsupported, `"$or"`},
		{"a key among operators", `{"svcPublic.a":{"$gt":1,"x":2}}`, ErrSyntax, `"x"`},
		{"$and of nothing", `{"$and":[]}`, ErrSyntax, "$and"},
		{"$or of nothing", `{"$or":[]}`, ErrSyntax, "$or"},
		{"$nor of an object", `{"$nor":{}}`, ErrSyntax, "$nor"},
		{"$or of scalars", `{"$or":[1]}`, ErrSyntax, "$or takes objects, not number"},
		{"a root in $or that is not one", `{"$or":[{"secret":1}]}`, ErrRoot, `"secret"`},
		{"private data in $and", `{"$and":[{"svcPrivate.x":1}]}`, ErrRoot, `"svcPrivate"`},
		{"$not of nothing", `{"svcPublic.a":{"$not":{}}}`, ErrSyntax, "$not"},
		{"$not of a text", `{"svcPublic.a":{"$not":"x"}}`, ErrSyntax, "$not"},
		{"$not of a plain object", `{"svcPublic.a":{"$not":{"x":1}}}`, ErrSyntax, "$not"},
		{"$not of $oid", `{"svcPublic.a":{"$not":{"$oid":"x"}}}`, ErrSyntax, "$not"},
		{"$in of a scalar", `{"svcPublic.a":{"$in":1}}`, ErrSyntax, "$in takes an array"},
		{"$nin of an object", `{"svcPublic.a":{"$nin":{}}}`, ErrSyntax, "$nin"},
		{"$in of operators", `{"svcPublic.a":{"$in":[{"$gt":1}]}}`, ErrSyntax, `"$gt"`},
		{"$in of a broken $oid", `{"svcPublic.a":{"$in":[{"$oid":1}]}}`, ErrSyntax, "$oid"},
		{"$all of a scalar", `{"svcPublic.a":{"$all":1}}`, ErrSyntax, "$all takes an array"},
		{"$all of operators", `{"svcPublic.a":{"$all":[{"$gt":1}]}}`, ErrSyntax, `"$gt"`},
		{"$all of a value and $elemMatch", `{"svcPublic.a":{"$all":[1,{"$elemMatch":{"x":1}}]}}`, ErrSyntax, "not both"},
		{"$all of $elemMatch and a value", `{"svcPublic.a":{"$all":[{"$elemMatch":{"x":1}},1]}}`, ErrSyntax, "not both"},
		{"$all of $elemMatch with company", `{"svcPublic.a":{"$all":[{"$elemMatch":{"x":1},"$gt":1}]}}`, ErrSyntax, "$all"},
		{"$elemMatch of a scalar", `{"svcPublic.a":{"$elemMatch":1}}`, ErrSyntax, "$elemMatch takes an object"},
		{"$elemMatch of $oid", `{"svcPublic.a":{"$elemMatch":{"$oid":"x"}}}`, ErrUnsupported, `"$oid"`},
		{"$elemMatch with an empty path", `{"svcPublic.a":{"$elemMatch":{"":1}}}`, ErrSyntax, "empty segment"},
		{"$size that is negative", `{"svcPublic.a":{"$size":-1}}`, ErrSyntax, "$size"},
		{"$size with a fraction", `{"svcPublic.a":{"$size":1.5}}`, ErrSyntax, "$size"},
		{"$size of a text", `{"svcPublic.a":{"$size":"1"}}`, ErrSyntax, "$size"},
		{"$size that no array has", `{"svcPublic.a":{"$size":1e30}}`, ErrSyntax, "$size"},
		{"$mod by 0", `{"svcPublic.a":{"$mod":[0,1]}}`, ErrSyntax, "$mod cannot divide by 0"},
		{"$mod by less than 1", `{"svcPublic.a":{"$mod":[0.9,1]}}`, ErrSyntax, "$mod cannot divide by 0"},
		{"$mod of one number", `{"svcPublic.a":{"$mod":[2]}}`, ErrSyntax, "$mod"},
		{"$mod of three numbers", `{"svcPublic.a":{"$mod":[2,1,0]}}`, ErrSyntax, "$mod"},
		{"$mod of texts", `{"svcPublic.a":{"$mod":["2",1]}}`, ErrSyntax, "$mod"},
		{"$mod of huge numbers", `{"svcPublic.a":{"$mod":[1e30,1]}}`, ErrSyntax, "$mod"},
		{"$mod of a number", `{"svcPublic.a":{"$mod":2}}`, ErrSyntax, "$mod"},
		{"$type that is unknown", `{"svcPublic.a":{"$type":"strnig"}}`, ErrSyntax, "strnig"},
		{"$type with an unknown code", `{"svcPublic.a":{"$type":20}}`, ErrSyntax, "20"},
		{"$type with a fraction", `{"svcPublic.a":{"$type":2.5}}`, ErrSyntax, "2.5"},
		{"$type of nothing", `{"svcPublic.a":{"$type":[]}}`, ErrSyntax, "$type"},
		{"$type of null", `{"svcPublic.a":{"$type":null}}`, ErrSyntax, "$type"},
		{"$type of a list in a list", `{"svcPublic.a":{"$type":[["int"]]}}`, ErrSyntax, "$type"},
		{"bits of a negative mask", `{"svcPublic.a":{"$bitsAllSet":-1}}`, ErrSyntax, "$bitsAllSet"},
		{"bits of a fraction", `{"svcPublic.a":{"$bitsAnySet":1.5}}`, ErrSyntax, "$bitsAnySet"},
		{"bits at a negative place", `{"svcPublic.a":{"$bitsAllClear":[-1]}}`, ErrSyntax, "$bitsAllClear"},
		{"bits of a text", `{"svcPublic.a":{"$bitsAnyClear":"AA=="}}`, ErrSyntax, "$bitsAnyClear"},
		{"$regex of a number", `{"svcPublic.a":{"$regex":1}}`, ErrSyntax, "$regex takes a text"},
		{"$regex that is broken", `{"svcPublic.a":{"$regex":"a("}}`, ErrSyntax, "$regex"},
		{"$regex that looks ahead", `{"svcPublic.a":{"$regex":"a(?=b)"}}`, ErrSyntax, "(?="},
		{"$regex that looks behind", `{"svcPublic.a":{"$regex":"(?<!a)b"}}`, ErrSyntax, "$regex"},
		{"$regex that refers back", `{"svcPublic.a":{"$regex":"(a)\\1"}}`, ErrSyntax, "$regex"},
		{"$regex that closes the options", `{"svcPublic.a":{"$regex":")a(","$options":"i"}}`, ErrSyntax, "$regex"},
		{"$regex that is long", `{"svcPublic.a":{"$regex":"` + strings.Repeat("a", 1025) + `"}}`, ErrTooLarge, "1024"},
		{"$regex that repeats repetitions", `{"svcPublic.a":{"$regex":"((a{100}){100}){100}"}}`, ErrSyntax, "$regex"},
		{"$regex that repeats a lot", `{"svcPublic.a":{"$regex":"(ab?c?d?){999}"}}`, ErrTooLarge, "$regex"},
		{"$regex that repeats many alternatives", `{"svcPublic.a":{"$regex":"(` + strings.Repeat("a?b|", 100) + `c){50}"}}`, ErrTooLarge, "$regex"},
		{"several $regex together", `{"svcPublic.a":{"$regex":"a{1,600}"},"svcPublic.b":{"$regex":"a{1,600}"}}`, ErrTooLarge, "$regex"},
		{"$options alone", `{"svcPublic.a":{"$options":"i"}}`, ErrSyntax, "$options"},
		{"$options x", `{"svcPublic.a":{"$regex":"a","$options":"x"}}`, ErrSyntax, `"x"`},
		{"$options u", `{"svcPublic.a":{"$regex":"a","$options":"iu"}}`, ErrSyntax, `"u"`},
		{"$options of a number", `{"svcPublic.a":{"$regex":"a","$options":1}}`, ErrSyntax, "$options takes a text"},
		{"$oid at the top", `{"$oid":"x"}`, ErrUnsupported, `"$oid"`},
		{"$oid of a number", `{"_id":{"$oid":1}}`, ErrSyntax, "$oid"},
		{"$oid with company", `{"_id":{"$oid":"x","y":1}}`, ErrSyntax, "$oid"},
		{"a long text", `{"_id":"` + strings.Repeat("x", 16<<10) + `"}`, ErrTooLarge, "16384"},
		{"21 levels", `{"_id":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`, ErrTooLarge, "nested 21 deep"},
		{"10,000 levels", `{"_id":` + strings.Repeat("[", 8000) + strings.Repeat("]", 8000) + `}`, ErrSyntax, "nested deeper"},
		{"65 conditions", conditions(65), ErrTooLarge, "64 conditions"},
		{"21 segments", `{"svcPublic` + strings.Repeat(".a", 20) + `":1}`, ErrTooLarge, "20 segments"},
		{"65 conditions in a tree", `{"$or":[` + conditions(30) + `,` + conditions(35) + `]}`, ErrTooLarge, "64 conditions"},
		{"65 conditions in one $elemMatch", `{"svcPublic.a":{"$elemMatch":` + conditions(64) + `}}`, ErrTooLarge, "64 conditions"},
		{"65 values of $all", `{"svcPublic.a":{"$all":[1` + strings.Repeat(",1", 64) + `]}}`, ErrTooLarge, "64 conditions"},
		{"65 empty objects in $or", `{"$or":[{}` + strings.Repeat(",{}", 64) + `]}`, ErrTooLarge, "64 conditions"},
		{"21 levels of $and", strings.Repeat(`{"$and":[`, 10) + `{"_id":[]}` + strings.Repeat(`]}`, 10), ErrTooLarge, "nested 22 deep"},
		{"five positions through $elemMatch", `{"svcPublic.0.1.2":{"$elemMatch":{"a":1,"3.4":{"$gt":1}}}}`, ErrTooLarge, "4 positions"},
		{"five positions through two $elemMatch", `{"svcPublic.0.1":{"$elemMatch":{"2.3":{"$elemMatch":{"$elemMatch":{"4":1}}}}}}`, ErrTooLarge, "4 positions"},
		{"five positions", `{"svcPublic.0.1.2.3.4":1}`, ErrTooLarge, "4 positions"},
	} {
		f, err := Parse([]byte(c.src), Options{})
		assert.True(t, errors.Is(err, c.want) && f == nil && strings.Contains(err.Error(), c.says) && len(err.Error()) <= 200,
			"%s: Parse(%.100s) = %v, %v, want %v that says %q in at most 200 bytes", c.name, c.src, f, err, c.want, c.says)
	}
}

func conditions(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"svcPublic.k%d":%d`, i, i))
	}
	return "{" + strings.Join(list, ",") + "}"
}

func TestParseTakesWhatIsAtTheLimit(t *testing.T) {
	for _, src := range []string{
		conditions(64),
		`{"svcPublic.a":1,"svcPublic.A":2}`,
		`{"_id":` + strings.Repeat("[", 19) + strings.Repeat("]", 19) + `}`,
		`{"svcPublic` + strings.Repeat(".a", 19) + `":1}`,
		`{"$or":[` + conditions(30) + `,` + conditions(34) + `]}`,
		`{"svcPublic.a":{"$all":[1` + strings.Repeat(",1", 63) + `]}}`,
		`{"svcPublic.a":{"$in":[1` + strings.Repeat(",1", 8000) + `]}}`,
		`{"$or":[{}` + strings.Repeat(",{}", 63) + `]}`,
		strings.Repeat(`{"$and":[`, 9) + `{"_id":[]}` + strings.Repeat(`]}`, 9),
		`{"svcPublic.a":{"$regex":"` + strings.Repeat("a", 1024) + `"}}`,
		`{"svcPublic.a":{"$regex":"` + strings.Repeat(`\u0061`, 1024) + `"}}`,
		`{"svcPublic.a":{"$regex":"^.{0,255}$"}}`,
		`{"svcPublic.0.a.1.b.2.c.3":1}`,
		`{"svcPublic.0.1.2":{"$elemMatch":{"3":1,"a":{"$elemMatch":{"0":1}}}}}`,
		`{"_id":"` + strings.Repeat("x", 16<<10-10) + `"}`,
		" \n{ \"_id\" : 1 }\n",
	} {
		_, err := Parse([]byte(src), Options{})
		assert.NoError(t, err, "Parse(%.100s)", src)
	}
}

func TestParseKeepsNothingOfItsInput(t *testing.T) {
	src := []byte(`{"svcPublic.a":"x"}`)
	f, err := Parse(src, Options{})
	require.NoError(t, err)
	clear(src)
	assert.True(t, f.Match(Document{Public: data.Value(`{"a":"x"}`)}), "after its text is overwritten the filter does not match, want it to")
}
