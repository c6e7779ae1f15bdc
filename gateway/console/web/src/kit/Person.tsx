const initials = (name: string) =>
  name
    .split(/[\s.@_-]+/)
    .filter((word) => word !== "")
    .slice(0, 2)
    .map((word) => word.charAt(0).toUpperCase())
    .join("");

/** A person: the first letters and the name. */
export function Person({ name, sign = true }: { name: string; sign?: boolean }) {
  return (
    <span className="person">
      {sign && <Initials name={name} />}
      <span className="person-name">{name}</span>
    </span>
  );
}

export function Initials({ name }: { name: string }) {
  return (
    <span className="initials" aria-hidden="true">
      {initials(name)}
    </span>
  );
}
