// Numbers are added and multiplied as the decimals that they are written as: exactly,
// then rounded once, so that 0.1 times 3 is 0.3. The server's expressions do the same
// (statemachine/decimal), and both are held to its testdata/cases.json.

interface Decimal {
  coefficient: bigint;
  exponent: number;
}

function decimalOf(value: number): Decimal {
  const [mantissa = "", exponent = "0"] = String(value).split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  return { coefficient: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

const numberOf = ({ coefficient, exponent }: Decimal) => Number(`${coefficient}e${exponent}`);

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

/** Adds numbers. What is none counts nothing. */
export function sumOf(values: unknown[]): number {
  const decimals = values.filter(isNumber).map(decimalOf);
  const exponent = Math.min(0, ...decimals.map((decimal) => decimal.exponent));
  const coefficient = decimals.reduce((sum, decimal) => sum + decimal.coefficient * 10n ** BigInt(decimal.exponent - exponent), 0n);
  return numberOf({ coefficient, exponent });
}

/** Multiplies numbers from left to right; undefined when one is none. */
export function productOf(values: unknown[]): number | undefined {
  if (!values.every(isNumber)) {
    return undefined;
  }
  return values.reduce((product, value) => {
    const [a, b] = [decimalOf(product), decimalOf(value)];
    return numberOf({ coefficient: a.coefficient * b.coefficient, exponent: a.exponent + b.exponent });
  }, 1);
}
