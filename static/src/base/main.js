// Every page loads this: the theme toggle and relative times.
import { startPage } from "../lib/page.js";

startPage();
