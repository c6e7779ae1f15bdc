// Package decimal calculates with float64 as people write them. 0.1 is one tenth here and not the double next to it:
// operands are taken by their shortest decimal form, the one that JSON has, the result is exact, and it is rounded once
// to the nearest double. So 0.1 * 3 is 0.3, and a sum of prices that fits 15 digits is exact to the cent, while numbers
// stay what they are everywhere else.
//
//	Add(0.1, 0.2)           0.3
//	Mul(438.76, 7)          3071.32
//	Div(1, 3)               0.3333333333333333, by a quotient of 17 digits
//	Mod(0.3, 0.1)           0
//	Sqrt(1.21)              1.1
//
// A Total is the sum of many, exact over all of them and rounded once.
//
// Zeros, infinities, NaN and operands so far apart that an exact result has more than 37 digits give what float64
// gives; only a Total is exact at any distance. The same arithmetic in the browser is
// gateway/console/web/src/decimal.ts; both are held to testdata/cases.json.
//
// Nothing allocates but what has more than 19 digits on its way, and Sqrt.
package decimal
