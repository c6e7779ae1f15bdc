import { Component, type ReactNode } from "react";

interface BoundaryProps {
  children: ReactNode;
  /** Shown in place of children that could not be drawn. */
  fallback: (fault: unknown) => ReactNode;
}

/** Keeps a fault of one part of the page to that part. */
export class Boundary extends Component<BoundaryProps, { fault: unknown; failed: boolean }> {
  override state = { fault: undefined as unknown, failed: false };

  static getDerivedStateFromError(fault: unknown) {
    return { fault, failed: true };
  }

  override render() {
    return this.state.failed ? this.props.fallback(this.state.fault) : this.props.children;
  }
}
