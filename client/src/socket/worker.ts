/** The socket's worker, so that a busy page delays no sound and a hidden one delays no reconnecting. */
import { serve } from "./serve";

serve(self);
