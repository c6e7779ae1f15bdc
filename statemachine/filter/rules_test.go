package filter

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRules has what the examples of FILTER.md leave out, on svcPublic. Each group of
// cases names the heading that it belongs to. Package data holds which values are equal
// and which is greater.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name, filter, public string
		want                 bool
	}{
		// statemachine/filter/FILTER.md, "Paths".
		{"arrays in arrays' objects are followed", `{"svcPublic.a.b.c":3}`, `{"a":[{"b":[{"c":1},{"c":3}]}]}`, true},
		{"a position does not take another element", `{"svcPublic.a.0":2}`, `{"a":[1,2]}`, false},
		{"a position leads on into an array of objects", `{"svcPublic.a.0.b":1}`, `{"a":[[{"b":1}]]}`, true},
		{"digits are a key in an element, too", `{"svcPublic.a.0":1}`, `{"a":[5,{"0":1}]}`, true},
		{"a position behind the end gives nothing", `{"svcPublic.a.2":null}`, `{"a":[1,2]}`, false},
		{"a stored key with a dot is not found by a path", `{"svcPublic.a.b":1}`, `{"a.b":1}`, false},
		{"a key that a stored value spells with escapes is found", `{"svcPublic.a":1}`, `{"\u0061":1}`, true},
		{"a key that the filter spells with escapes is found", `{"svcPublic.\u0061":1}`, `{"a":1}`, true},

		// statemachine/filter/FILTER.md, "Null and missing".
		{"null matches an element", `{"svcPublic.a":null}`, `{"a":[1,null]}`, true},
		{"null matches what an object in an array misses", `{"svcPublic.a.b":null}`, `{"a":[{"b":1},{"c":1}]}`, true},
		{"an empty array in the middle gives nothing", `{"svcPublic.a.b":null}`, `{"a":[]}`, false},
		{"a nested array in the middle gives nothing", `{"svcPublic.a.b":null}`, `{"a":[[]]}`, false},
		{"an object at a position that misses the rest gives missing", `{"svcPublic.a.0.b":null}`, `{"a":[{"c":1}]}`, true},
		{"null inside a value is only null", `{"svcPublic.a":{"b":null}}`, `{"a":{}}`, false},

		// statemachine/filter/FILTER.md, "Equality".
		{"an empty text is not null", `{"svcPublic.a":""}`, `{"a":null}`, false},
		{"an object matches an element", `{"svcPublic.a":{"x":1}}`, `{"a":[{"x":1}]}`, true},
		{"the whole root can be compared", `{"svcPublic":{"a":1}}`, `{"a":1}`, true},
		{"$ inside a value is a key like others", `{"svcPublic.a":{"x":{"$gt":1}}}`, `{"a":{"x":{"$gt":1}}}`, true},
		{"$ behind the first key is a key like others", `{"svcPublic.a":{"x":1,"$gt":1}}`, `{"a":{"x":1,"$gt":1}}`, true},

		// statemachine/filter/FILTER.md, "Paths": which operators look at the elements
		// of an array.
		{"a comparison holds for an element", `{"svcPublic.a":{"$gt":5}}`, `{"a":[1,9]}`, true},
		{"a comparison holds for no element", `{"svcPublic.a":{"$gt":5}}`, `{"a":[1,2]}`, false},
		{"two comparisons may hold for two elements", `{"svcPublic.a":{"$gt":5,"$lt":3}}`, `{"a":[1,9]}`, true},
		{"a comparison with an array looks at the whole", `{"svcPublic.a":{"$gt":[1]}}`, `{"a":[2,0]}`, true},
		{"a comparison with an array looks at elements that are arrays", `{"svcPublic.a":{"$lt":[1]}}`, `{"a":[5,[0]]}`, true},
		{"$type looks at the elements", `{"svcPublic.a":{"$type":"string"}}`, `{"a":[1,"x"]}`, true},
		{"$type looks at the whole array", `{"svcPublic.a":{"$type":"array"}}`, `{"a":[1,"x"]}`, true},
		{"$exists does not look at the elements", `{"svcPublic.a":{"$exists":true}}`, `{"a":[]}`, true},
		{"$mod looks at the elements", `{"svcPublic.a":{"$mod":[5,0]}}`, `{"a":[1,10]}`, true},
		{"a comparison is tried on the element at a position as a whole", `{"svcPublic.a.0":{"$gt":1}}`, `{"a":[[5]]}`, false},

		// statemachine/filter/FILTER.md, "Null and missing": operators.
		{"$gte null matches null", `{"svcPublic.a":{"$gte":null}}`, `{"a":null}`, true},
		{"$gte null does not match a value", `{"svcPublic.a":{"$gte":null}}`, `{"a":1}`, false},
		{"$lte null matches missing", `{"svcPublic.a":{"$lte":null}}`, `{}`, true},
		{"$gt null matches nothing, not null", `{"svcPublic.a":{"$gt":null}}`, `{"a":null}`, false},
		{"$lt null matches nothing", `{"svcPublic.a":{"$lt":null}}`, `{}`, false},
		{"$in with null matches null", `{"svcPublic.a":{"$in":[7,null,"x"]}}`, `{"a":null}`, true},
		{"$in with only null matches missing", `{"svcPublic.a":{"$in":[null]}}`, `{}`, true},
		{"$in without null does not match missing", `{"svcPublic.a":{"$in":[7,"x"]}}`, `{}`, false},
		{"$in with null does not match what a scalar in an array would have", `{"svcPublic.a.b":{"$in":[null,1]}}`, `{"a":[1]}`, false},
		{"$exists true matches when one element has it", `{"svcPublic.a.b":{"$exists":true}}`, `{"a":[{"c":1},{"b":null}]}`, true},
		{"$exists false does not match when one element has it", `{"svcPublic.a.b":{"$exists":false}}`, `{"a":[{"c":1},{"b":null}]}`, false},
		{"$exists 0 is false", `{"svcPublic.a":{"$exists":0.0}}`, `{"a":1}`, false},
		{"$exists null is false", `{"svcPublic.a":{"$exists":null}}`, `{"a":1}`, false},
		{"$exists with any other operand is true", `{"svcPublic.a":{"$exists":"no"}}`, `{"a":1}`, true},

		// statemachine/filter/FILTER.md, "Comparisons".
		{"$gt is strict", `{"svcPublic.a":{"$gt":2.0}}`, `{"a":2}`, false},
		{"$lte is not", `{"svcPublic.a":{"$lte":2}}`, `{"a":20e-1}`, true},

		// statemachine/filter/FILTER.md, "Equality": operators.
		{"$eq takes operators as values", `{"svcPublic.a":{"$eq":{"$gt":1}}}`, `{"a":{"$gt":1}}`, true},
		{"$in finds each of many", `{"svcPublic.a":{"$in":["d",5,"b",null,1.0,[],{},"a",true,"c"]}}`, `{"a":"c"}`, true},
		{"$in finds numbers by value", `{"svcPublic.a":{"$in":["d",5,1.0]}}`, `{"a":10e-1}`, true},
		{"$in finds no others", `{"svcPublic.a":{"$in":["d",5,"b",1.0,[],{},"a",true,"c"]}}`, `{"a":false}`, false},
		{"$in of nothing matches nothing", `{"svcPublic.a":{"$in":[]}}`, `{}`, false},

		// statemachine/filter/FILTER.md, "Negation".
		{"$ne matches when a path leads to nothing", `{"svcPublic.a.b":{"$ne":null}}`, `{"a":[1]}`, true},
		{"$nin of nothing matches everything", `{"svcPublic.a":{"$nin":[]}}`, `{"a":1}`, true},
		{"$not of two does not match when both hold", `{"svcPublic.a":{"$not":{"$gt":1,"$lt":5}}}`, `{"a":3}`, false},
		{"$not of a regular expression", `{"svcPublic.a":{"$not":{"$regex":"^X","$options":"i"}}}`, `{"a":"xy"}`, false},
		{"$not of $not", `{"svcPublic.a":{"$not":{"$not":{"$eq":1}}}}`, `{"a":[1,2]}`, true},
		{"$not of $ne", `{"svcPublic.a":{"$not":{"$ne":1}}}`, `{"a":[1,2]}`, true},
		{"$nor does not match when one does", `{"$nor":[{"svcPublic.a":1},{"svcPublic.b":1}]}`, `{"b":1}`, false},
		{"$nor of two conditions in one", `{"$nor":[{"svcPublic.a":1,"svcPublic.b":1}]}`, `{"b":1}`, true},

		// statemachine/filter/FILTER.md, "Elements of arrays".
		{"$elemMatch on a document follows paths", `{"svcPublic.a":{"$elemMatch":{"x.y":{"$gt":1}}}}`, `{"a":[{"x":[{"y":2}]}]}`, true},
		{"$elemMatch on a document skips scalars", `{"svcPublic.a":{"$elemMatch":{"x":null}}}`, `{"a":[1,"x",null]}`, false},
		{"$elemMatch on a document misses keys in nested arrays", `{"svcPublic.a":{"$elemMatch":{"x":null}}}`, `{"a":[[5,7]]}`, true},
		{"$elemMatch on a document goes on from such a position", `{"svcPublic.a":{"$elemMatch":{"0.x":7}}}`, `{"a":[[{"x":7}]]}`, true},
		{"$elemMatch on a document expands the array at such a position", `{"svcPublic.a":{"$elemMatch":{"0":7}}}`, `{"a":[[[6,7]]]}`, true},
		{"$elemMatch on a document does not look inside nested arrays", `{"svcPublic.a":{"$elemMatch":{"x":7}}}`, `{"a":[[{"x":7}]]}`, false},
		{"$elemMatch takes $and beside a path", `{"svcPublic.a":{"$elemMatch":{"$and":[{"x":1}],"y":1}}}`, `{"a":[{"x":1},{"y":1}]}`, false},
		{"an empty $elemMatch wants an object or array", `{"svcPublic.a":{"$elemMatch":{}}}`, `{"a":[1,{}]}`, true},
		{"$elemMatch does not match what is no array", `{"svcPublic.a":{"$elemMatch":{"x":1}}}`, `{"a":{"x":1}}`, false},
		{"$elemMatch on values does not expand further", `{"svcPublic.a":{"$elemMatch":{"$gt":1}}}`, `{"a":[[5]]}`, false},
		{"$elemMatch on values takes $ne of one element", `{"svcPublic.a":{"$elemMatch":{"$ne":1}}}`, `{"a":[1,2]}`, true},
		{"$elemMatch on values takes $not of one element", `{"svcPublic.a":{"$elemMatch":{"$not":{"$gt":1}}}}`, `{"a":[5,0]}`, true},
		{"$elemMatch on values takes $nin", `{"svcPublic.a":{"$elemMatch":{"$nin":[7,8]}}}`, `{"a":[8]}`, false},
		{"$elemMatch on values takes $size of the element", `{"svcPublic.a":{"$elemMatch":{"$size":2}}}`, `{"a":[[1,2]]}`, true},
		{"$elemMatch on values takes $all of the element itself", `{"svcPublic.a":{"$elemMatch":{"$all":[[1]]}}}`, `{"a":[[1]]}`, true},
		{"$elemMatch on values takes $regex with $options", `{"svcPublic.a":{"$elemMatch":{"$regex":"X","$options":"i"}}}`, `{"a":["x"]}`, true},
		{"$elemMatch in $elemMatch", `{"svcPublic.a":{"$elemMatch":{"$elemMatch":{"$gt":1}}}}`, `{"a":[[0],[5]]}`, true},
		{"$elemMatch of documents in $elemMatch of values", `{"svcPublic.a":{"$elemMatch":{"$elemMatch":{"x":1}}}}`, `{"a":[[{"x":1}]]}`, true},
		{"$elemMatch on the array at a position", `{"svcPublic.a.0":{"$elemMatch":{"$gt":1}}}`, `{"a":[[5]]}`, true},
		{"$all wants every value", `{"svcPublic.a":{"$all":[1,2]}}`, `{"a":[1,3]}`, false},
		{"$all of an array matches the whole", `{"svcPublic.a":{"$all":[[1,2]]}}`, `{"a":[1,2]}`, true},
		{"$all of null matches missing", `{"svcPublic.a":{"$all":[null]}}`, `{}`, true},
		{"$not of $all of nothing matches everything", `{"svcPublic.a":{"$not":{"$all":[]}}}`, `{"a":[]}`, true},

		// statemachine/filter/FILTER.md, "Numbers, types and bits", and $size.
		{"$size may be spelled 2.0", `{"svcPublic.a":{"$size":2.0}}`, `{"a":[1,2]}`, true},
		{"$size does not match more", `{"svcPublic.a":{"$size":1}}`, `{"a":[1,2]}`, false},
		{"$size does not match an object", `{"svcPublic.a":{"$size":1}}`, `{"a":{"x":1}}`, false},
		{"$mod", `{"svcPublic.a":{"$mod":[4,1]}}`, `{"a":9}`, true},
		{"$mod truncates the stored number", `{"svcPublic.a":{"$mod":[4,1]}}`, `{"a":9.99}`, true},
		{"$mod truncates its operands", `{"svcPublic.a":{"$mod":[4.9,1.9]}}`, `{"a":9}`, true},
		{"$mod truncates towards 0", `{"svcPublic.a":{"$mod":[4,-1]}}`, `{"a":-9.99}`, true},
		{"$mod has the sign of the stored number", `{"svcPublic.a":{"$mod":[4,1]}}`, `{"a":-9}`, false},
		{"$mod is exact beyond 2^53", `{"svcPublic.a":{"$mod":[2,1]}}`, `{"a":9007199254740993}`, true},
		{"$mod does not match what has no 64 bits", `{"svcPublic.a":{"$mod":[1,0]}}`, `{"a":1e400}`, false},
		{"$mod does not match a text", `{"svcPublic.a":{"$mod":[1,0]}}`, `{"a":"4"}`, false},
		{"$mod of the smallest number by -1", `{"svcPublic.a":{"$mod":[-1,0]}}`, `{"a":-9223372036854775808}`, true},
		{"$type by number", `{"svcPublic.a":{"$type":2}}`, `{"a":"x"}`, true},
		{"$type by a number spelled otherwise", `{"svcPublic.a":{"$type":2.0}}`, `{"a":"x"}`, true},
		{"$type of a list", `{"svcPublic.a":{"$type":["string",8]}}`, `{"a":false}`, true},
		{"$type of a list that does not have it", `{"svcPublic.a":{"$type":["string",8]}}`, `{"a":1}`, false},
		{"$type number", `{"svcPublic.a":{"$type":"number"}}`, `{"a":1e400}`, true},
		{"$type int is an integer of 32 bits", `{"svcPublic.a":{"$type":"int"}}`, `{"a":-2147483648}`, true},
		{"$type int is not longer", `{"svcPublic.a":{"$type":"int"}}`, `{"a":2147483648}`, false},
		{"$type long is an integer of 64 bits", `{"svcPublic.a":{"$type":"long"}}`, `{"a":9223372036854775807}`, true},
		{"$type long is not shorter", `{"svcPublic.a":{"$type":"long"}}`, `{"a":5}`, false},
		{"$type double is what an integer cannot be", `{"svcPublic.a":{"$type":1}}`, `{"a":9223372036854775808}`, true},
		{"$type null", `{"svcPublic.a":{"$type":"null"}}`, `{"a":null}`, true},
		{"$type null does not match missing", `{"svcPublic.a":{"$type":10}}`, `{}`, false},
		{"$type array does not match an object", `{"svcPublic.a":{"$type":4}}`, `{"a":{}}`, false},
		{"$type of what JSON does not have matches nothing", `{"svcPublic.a":{"$type":["date",-1,"decimal"]}}`, `{"a":"2026-01-01"}`, false},
		{"$bitsAllSet with one clear", `{"svcPublic.a":{"$bitsAllSet":6}}`, `{"a":10}`, false},
		{"$bitsAllSet by place", `{"svcPublic.a":{"$bitsAllSet":[1,2]}}`, `{"a":6.0}`, true},
		{"$bitsAllClear", `{"svcPublic.a":{"$bitsAllClear":[0,3]}}`, `{"a":6}`, true},
		{"$bitsAnySet with none set", `{"svcPublic.a":{"$bitsAnySet":6}}`, `{"a":9}`, false},
		{"bits above the 64th are the sign", `{"svcPublic.a":{"$bitsAllSet":[63,200]}}`, `{"a":-1}`, true},
		{"bits above the 64th are clear in positive numbers", `{"svcPublic.a":{"$bitsAnySet":[63,200]}}`, `{"a":9223372036854775807}`, false},
		{"bits are of numbers of 64 bits only", `{"svcPublic.a":{"$bitsAllClear":[]}}`, `{"a":1e30}`, false},
		{"bits are exact beyond 2^53", `{"svcPublic.a":{"$bitsAllSet":[0,53]}}`, `{"a":9007199254740993}`, true},

		// statemachine/filter/FILTER.md, "Combinations" and "Regular expressions".
		{"$and wants all", `{"$and":[{"svcPublic.a":1},{"svcPublic.b":2}]}`, `{"a":1,"b":3}`, false},
		{"$or of {} matches everything", `{"$or":[{"svcPublic.a":1},{}]}`, `{}`, true},
		{"$regex is case-sensitive", `{"svcPublic.a":{"$regex":"B"}}`, `{"a":"abc"}`, false},
		{"without m, ^ is the beginning", `{"svcPublic.a":{"$regex":"^b"}}`, `{"a":"a\nb"}`, false},
		{"$options m", `{"svcPublic.a":{"$regex":"^b","$options":"m"}}`, `{"a":"a\nb"}`, true},
		{"without s, a dot is no new line", `{"svcPublic.a":{"$regex":"a.b"}}`, `{"a":"a\nb"}`, false},
		{"$options s", `{"svcPublic.a":{"$regex":"a.b","$options":"s"}}`, `{"a":"a\nb"}`, true},
		{"$options together", `{"svcPublic.a":{"$regex":"^B.c","$options":"ims"}}`, `{"a":"a\nb\nc"}`, true},
		{"$options that are empty", `{"svcPublic.a":{"$regex":"b","$options":""}}`, `{"a":"b"}`, true},
		{"$regex looks at the decoded text", `{"svcPublic.a":{"$regex":"^aé$"}}`, `{"a":"\u0061\u00e9"}`, true},
		{"$regex has its own escapes decoded once", `{"svcPublic.a":{"$regex":"^\\d\\.$"}}`, `{"a":"5."}`, true},
		{"$regex does not match missing", `{"svcPublic.a":{"$regex":""}}`, `{}`, false},
		{"$regex beside another operator", `{"svcPublic.a":{"$regex":"^a","$ne":"ab"}}`, `{"a":"ab"}`, false},

		{"$oid inside a value reads as its text", `{"svcPublic.a":[{"b":{"$oid":"x"}}]}`, `{"a":[{"b":"x"}]}`, true},
		{"$oid may be spelled with escapes", `{"svcPublic.a":{"\u0024oid":"x"}}`, `{"a":"x"}`, true},
	} {
		assert.Equal(t, c.want, mustParse(t, c.filter).Match(Document{Public: mustClean(t, c.public)}), "%s: %s matches %s", c.name, c.filter, c.public)
	}
}
