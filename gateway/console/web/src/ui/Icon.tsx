// A few line drawings. They decorate: the words beside them say the same.

const paths = {
  back: "M10 3 5 8l5 5",
  check: "M3 8.5 6.5 12 13 4.5",
  close: "M4 4l8 8M12 4l-8 8",
  down: "M3 6l5 5 5-5",
  form: "M4 2h8v12H4zM6.5 5.5h3M6.5 8h3M6.5 10.5h1.5",
  info: "M8 7.5v3.5M8 5v.1M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0Z",
  list: "M2.5 4 3.5 5 5.5 3M2.5 8.5l1 1 2-2M2.5 13l1 1 2-2M8 4h6M8 8.5h6M8 13h6",
  next: "M6 3l5 5-5 5",
  plus: "M8 3v10M3 8h10",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.5 10.5 14 14",
  up: "M3 10l5-5 5 5",
  warning: "M8 2 1.5 13.5h13L8 2ZM8 6.5v3.5M8 11.8v.1",
};

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={paths[name]} fill="none" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}
