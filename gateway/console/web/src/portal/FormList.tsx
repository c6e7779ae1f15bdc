import { useState } from "react";
import type { Category, Form } from "../api/types";
import { Link } from "../navigate";
import { Chip, toneOf } from "../ui/Chip";
import { Icon } from "../ui/Icon";
import { Time } from "../ui/Time";
import { formatNumber, readable } from "../words";

/** How many rows are shown at first, and more at a time. */
const rowsStep = 100;

interface FormListProps {
  category: Category;
  forms: Form[];
  roleName: (id: string) => string;
}

export function FormList({ category, forms, roleName }: FormListProps) {
  const [rows, setRows] = useState(rowsStep);
  const hidden = forms.length - rows;
  return (
    <>
      <div className="rows-head" aria-hidden="true">
        <span>Name</span>
        <span>Status</span>
        <span>Role</span>
        <span>Created</span>
      </div>
      <ul className="rows">
        {forms.slice(0, rows).map((form) => (
          <Row key={form.id} category={category} form={form} role={roleName(form.role)} />
        ))}
      </ul>
      {hidden > 0 && (
        <button type="button" className="button more" onClick={() => setRows(rows + rowsStep)}>
          Show {formatNumber(Math.min(hidden, rowsStep))} more
        </button>
      )}
    </>
  );
}

function Row({ category, form, role }: { category: Category; form: Form; role: string }) {
  return (
    <li className="row">
      <Link to={form.fullPath} className="row-name">
        {form.name}
      </Link>
      <span className="row-status">
        <span className="visually-hidden">Status: </span>
        {(form.status || "draft").split(", ").map((name) => (
          <Chip key={name} tone={toneOf(category)}>
            {readable(name)}
          </Chip>
        ))}
      </span>
      <span className="row-role">
        <span className="visually-hidden">Role: </span>
        {role}
      </span>
      <span className="row-when">
        <span className="visually-hidden">Created: </span>
        <Time at={form.when} />
      </span>
      <Icon name="next" />
    </li>
  );
}
